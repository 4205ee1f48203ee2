//! Options, cancel handles and the context.
use crate::error::{call, text, Result};
use perigee_sys as sys;
use std::ffi::CString;
use std::mem;
use std::ptr::{self, NonNull};

/// Options by name, as the C library lists them: threads, kernels, precision, weights, context, chunk …
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
        let name = CString::new(name).unwrap_or_default();
        let value = CString::new(value).unwrap_or_default();
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
    pub precision: String,
    pub error_bound: f64,
    pub deterministic: bool,
    pub in_use: bool,
}

/// Threads and kernel table that models share.
pub struct Context(pub(crate) NonNull<sys::perigee_context>);
unsafe impl Send for Context {}
unsafe impl Sync for Context {}

impl Context {
    /// Make one; `None` means defaults.
    pub fn new(options: Option<&Options>) -> Result<Context> {
        let mut p = ptr::null_mut();
        call(|e| unsafe {
            sys::perigee_context_new(Options::raw(options), ptr::null(), ptr::null(), ptr::null(), &mut p, e)
        })?;
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
