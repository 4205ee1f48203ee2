//! Options, cancel handles and the context.
use crate::error::{call, text, Error, Result};
use crate::kernel::KernelSet;
use perigee_sys as sys;
use std::ffi::CString;
use std::mem;
use std::os::raw::{c_char, c_int, c_void};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::ptr::{self, NonNull};

/// Options by name, as the C library lists them: threads, kernels, precision, weights, context, chunk …
#[derive(Debug)]
pub struct Options(NonNull<sys::perigee_options>);
unsafe impl Send for Options {}

impl Options {
    /// No option set: defaults.
    pub fn new() -> Result<Options> {
        let mut p = ptr::null_mut();
        call(|e| unsafe { sys::perigee_options_new(&mut p, e) })?;
        Ok(Options(NonNull::new(p).expect("a handle")))
    }
    /// Set an option from text.
    pub fn set(&mut self, name: &str, value: &str) -> Result<&mut Self> {
        let nul = |_| Error::argument("a NUL in an option");
        let name = CString::new(name).map_err(nul)?;
        let value = CString::new(value).map_err(nul)?;
        call(|e| unsafe { sys::perigee_options_set_text(self.0.as_ptr(), name.as_ptr(), value.as_ptr(), e) })?;
        Ok(self)
    }
    pub(crate) fn raw(options: Option<&Options>) -> *const sys::perigee_options {
        options.map_or(ptr::null(), |o| o.0.as_ptr())
    }
}

impl Drop for Options {
    fn drop(&mut self) {
        unsafe { sys::perigee_options_free(self.0.as_ptr()) }
    }
}

/// A handle by which any thread stops a load, a step or a generation. It stays triggered until reset.
#[derive(Debug)]
pub struct Cancel(NonNull<sys::perigee_cancel>);
unsafe impl Send for Cancel {}
unsafe impl Sync for Cancel {}

impl Cancel {
    /// Not triggered yet.
    pub fn new() -> Result<Cancel> {
        let mut p = ptr::null_mut();
        call(|e| unsafe { sys::perigee_cancel_new(&mut p, e) })?;
        Ok(Cancel(NonNull::new(p).expect("a handle")))
    }
    /// Stop the call that holds this handle.
    pub fn trigger(&self) {
        unsafe { sys::perigee_cancel_trigger(self.0.as_ptr()) }
    }
    /// Make it ready for another call.
    pub fn reset(&self) {
        unsafe { sys::perigee_cancel_reset(self.0.as_ptr()) }
    }
    /// Whether it was triggered.
    pub fn triggered(&self) -> bool {
        unsafe { sys::perigee_cancel_triggered(self.0.as_ptr()) != 0 }
    }
    pub(crate) fn raw(cancel: Option<&Cancel>) -> *mut sys::perigee_cancel {
        cancel.map_or(ptr::null_mut(), |c| c.0.as_ptr())
    }
}

impl Drop for Cancel {
    fn drop(&mut self) {
        unsafe { sys::perigee_cancel_free(self.0.as_ptr()) }
    }
}

/// One row of the kernel table.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Kernel {
    pub name: String,
    pub op: String,
    pub weight: String,
    pub isa: String,
    pub origin: String,
    pub numerics: String,
    pub precision: String,
    pub error_bound: f64,
    pub deterministic: bool,
    pub in_use: bool,
}

/// Threads and kernel table that models share.
#[derive(Debug)]
pub struct Context(pub(crate) NonNull<sys::perigee_context>);
unsafe impl Send for Context {}
unsafe impl Sync for Context {}

impl Context {
    /// Make one; `None` means defaults.
    pub fn new(options: Option<&Options>) -> Result<Context> {
        Context::make(options, ptr::null(), None)
    }
    /// With a log, which gets level (1 error … 4 all) and line, and rows of the host's own for the kernel table.
    pub fn with(options: Option<&Options>, log: Option<Log>, kernels: Option<&KernelSet>) -> Result<Context> {
        match log {
            None => Context::make(options, ptr::null(), kernels),
            Some(f) => {
                let log = sys::perigee_log {
                    struct_size: mem::size_of::<sys::perigee_log>(),
                    write: Some(write_log),
                    user: Box::into_raw(Box::new(f)) as *mut c_void, // released by the library, also on failure
                    release: Some(release_log),
                };
                Context::make(options, &log, kernels)
            }
        }
    }
    fn make(options: Option<&Options>, log: *const sys::perigee_log, kernels: Option<&KernelSet>) -> Result<Context> {
        let mut p = ptr::null_mut();
        let set = kernels.map_or(ptr::null(), |k| k.0.as_ptr() as *const _);
        call(|e| unsafe { sys::perigee_context_new(Options::raw(options), ptr::null(), log, set, &mut p, e) })?;
        Ok(Context(NonNull::new(p).expect("a handle")))
    }
    /// Threads that a step uses.
    pub fn threads(&self) -> usize {
        unsafe { sys::perigee_context_threads(self.0.as_ptr()) }
    }
    /// The kernel table, rows that are not called included.
    pub fn kernels(&self) -> Result<Vec<Kernel>> {
        let count = unsafe { sys::perigee_context_kernel_count(self.0.as_ptr()) };
        let mut all = Vec::with_capacity(count);
        for i in 0..count {
            let mut k: sys::perigee_kernel_info = unsafe { mem::zeroed() };
            k.struct_size = mem::size_of_val(&k);
            call(|e| unsafe { sys::perigee_context_kernel(self.0.as_ptr(), i, &mut k, e) })?;
            all.push(Kernel {
                name: text(k.name).unwrap_or_default(),
                op: text(k.op).unwrap_or_default(),
                weight: text(k.weight).unwrap_or_default(),
                isa: text(k.isa).unwrap_or_default(),
                origin: text(k.origin).unwrap_or_default(),
                numerics: text(k.numerics).unwrap_or_default(),
                precision: text(k.precision).unwrap_or_default(),
                error_bound: k.error_bound,
                deterministic: k.deterministic != 0,
                in_use: k.in_use != 0,
            });
        }
        Ok(all)
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        unsafe { sys::perigee_context_free(self.0.as_ptr()) }
    }
}

/// Takes level and line of a log, on a thread that called in.
pub type Log = Box<dyn Fn(i32, &str) + Send + Sync>;

unsafe extern "C" fn write_log(level: c_int, message: *const c_char, user: *mut c_void) {
    let f = &*(user as *const Log);
    let line = text(message).unwrap_or_default();
    // a panic must not unwind through C frames, and a log has nowhere to report it
    let _ = catch_unwind(AssertUnwindSafe(|| f(level, &line)));
}

unsafe extern "C" fn release_log(user: *mut c_void) {
    drop(Box::from_raw(user as *mut Log));
}

/// What is known of an option.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct OptionInfo {
    pub name: String,
    pub help: String,
    pub default: String,
    pub minimum: f64,
    pub maximum: f64,
}

/// All options that the library knows.
pub fn options() -> Result<Vec<OptionInfo>> {
    let mut all = Vec::new();
    for i in 0..unsafe { sys::perigee_option_count() } {
        let mut d: sys::perigee_option_description = unsafe { mem::zeroed() };
        d.struct_size = mem::size_of_val(&d);
        call(|e| unsafe { sys::perigee_option_describe(i, &mut d, e) })?;
        all.push(OptionInfo {
            name: text(d.name).unwrap_or_default(),
            help: text(d.help).unwrap_or_default(),
            default: text(d.default_text).unwrap_or_default(),
            minimum: d.minimum,
            maximum: d.maximum,
        });
    }
    Ok(all)
}
