//! Models: load, plan, inspect.
use crate::context::{Cancel, Context, Options};
use crate::error::{call, text, Result};
use perigee_sys as sys;
use std::any::Any;
use std::mem;
use std::ops::ControlFlow;
use std::os::raw::{c_char, c_int, c_void};
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::path::Path;
use std::ptr::{self, NonNull};
use std::slice;

#[cfg(unix)]
pub(crate) fn path_bytes(path: &Path) -> &[u8] {
    std::os::unix::ffi::OsStrExt::as_bytes(path.as_os_str())
}

/// What a host needs to know of a model.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Info {
    pub family: String,
    pub vocabulary: i64,
    pub hidden: i64,
    pub layers: i64,
    pub kda_layers: i64,
    pub context: i64,
    pub bos: Option<i64>,
    pub end_ids: Vec<i32>,
    pub weight_bytes: i64,
    pub resident_bytes: i64,
    pub token_bytes: i64,
}

/// What a load and its sessions would take, in bytes.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Plan {
    pub disk_bytes: i64,
    pub resident_bytes: i64,
    pub relaid_bytes: i64,
    pub table_bytes: i64,
    pub token_bytes: i64,
    pub session_fixed_bytes: i64,
    pub session_token_bytes: i64,
    pub cache_block_tokens: i64,
    pub scratch_bytes: i64,
    pub chunk: i64,
    pub context: i64,
    pub available_bytes: i64,
    pub mapped: bool,
    pub fits: bool,
}

/// One component of a model with its exact counts.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Component {
    pub name: String,
    pub title: String,
    pub formula: String,
    pub shape: String,
    pub stored: String,
    pub per_instance: i64,
    pub instances: i64,
    pub total: i64,
    pub active: i64,
    pub disk_total: Option<i64>,
    pub disk_bytes: Option<i64>,
}

/// Components and totals.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Description {
    pub family: String,
    pub parameters: i64,
    pub active: i64,
    pub disk_parameters: Option<i64>,
    pub disk_bytes: Option<i64>,
    pub layers: i64,
    pub kda_layers: i64,
    pub mla_layers: i64,
    pub moe_layers: i64,
    pub components: Vec<Component>,
}

/// A loaded model: immutable, shared by any number of threads and sessions.
#[derive(Debug)]
pub struct Model {
    pub(crate) raw: NonNull<sys::perigee_model>,
}
// The header says: any thread.
unsafe impl Send for Model {}
unsafe impl Sync for Model {}

type Progress<'a> = dyn FnMut(i64, i64) -> ControlFlow<()> + 'a;
struct ProgressState<'a> {
    f: &'a mut Progress<'a>,
    panic: Option<Box<dyn Any + Send>>,
}

unsafe extern "C" fn progress(done: i64, total: i64, user: *mut c_void) -> c_int {
    let state = &mut *(user as *mut ProgressState);
    match catch_unwind(AssertUnwindSafe(|| (state.f)(done, total))) {
        Ok(ControlFlow::Continue(())) => 0,
        Ok(ControlFlow::Break(())) => 1,
        Err(p) => {
            state.panic = Some(p); // must not unwind through C frames
            1
        }
    }
}

impl Model {
    /// Load the checkpoint folder at `path`.
    pub fn load(context: &Context, path: impl AsRef<Path>, options: Option<&Options>) -> Result<Model> {
        Model::load_with(context, path, options, None, |_, _| ControlFlow::Continue(()))
    }

    /// Load with progress (bytes done, bytes in all) and a cancel handle.
    pub fn load_with(
        context: &Context,
        path: impl AsRef<Path>,
        options: Option<&Options>,
        cancel: Option<&Cancel>,
        mut on_progress: impl FnMut(i64, i64) -> ControlFlow<()>,
    ) -> Result<Model> {
        let bytes = path_bytes(path.as_ref());
        let mut state = ProgressState {
            f: &mut on_progress,
            panic: None,
        };
        let mut p = ptr::null_mut();
        let result = call(|e| unsafe {
            sys::perigee_model_load(
                context.0.as_ptr(),
                bytes.as_ptr() as *const c_char,
                bytes.len(),
                Options::raw(options),
                Some(progress),
                &mut state as *mut ProgressState as *mut c_void,
                Cancel::raw(cancel),
                &mut p,
                e,
            )
        });
        if let Some(panic) = state.panic.take() {
            resume_unwind(panic);
        }
        result?;
        Ok(Model {
            raw: NonNull::new(p).expect("a handle"),
        })
    }

    /// What the model is.
    pub fn info(&self) -> Result<Info> {
        let mut i: sys::perigee_model_info = unsafe { mem::zeroed() };
        i.struct_size = mem::size_of_val(&i);
        call(|e| unsafe { sys::perigee_model_get_info(self.raw.as_ptr(), &mut i, e) })?;
        let ends = match i.end_count {
            0 => &[][..],
            n => unsafe { slice::from_raw_parts(i.end_ids, n) },
        };
        Ok(Info {
            family: text(i.family).unwrap_or_default(),
            vocabulary: i.vocabulary,
            hidden: i.hidden,
            layers: i.layers,
            kda_layers: i.kda_layers,
            context: i.context,
            bos: if i.bos < 0 { None } else { Some(i.bos) },
            end_ids: ends.to_vec(),
            weight_bytes: i.weight_bytes,
            resident_bytes: i.resident_bytes,
            token_bytes: i.token_bytes,
        })
    }

    /// Work out what loading `path` takes, without reading weights.
    pub fn plan(context: &Context, path: impl AsRef<Path>, options: Option<&Options>) -> Result<Plan> {
        let bytes = path_bytes(path.as_ref());
        let mut p: sys::perigee_plan = unsafe { mem::zeroed() };
        p.struct_size = mem::size_of_val(&p);
        let at = bytes.as_ptr() as *const c_char;
        call(|e| unsafe {
            sys::perigee_model_plan(context.0.as_ptr(), at, bytes.len(), Options::raw(options), &mut p, e)
        })?;
        Ok(Plan {
            disk_bytes: p.disk_bytes,
            resident_bytes: p.resident_bytes,
            relaid_bytes: p.relaid_bytes,
            table_bytes: p.table_bytes,
            token_bytes: p.token_bytes,
            session_fixed_bytes: p.session_fixed_bytes,
            session_token_bytes: p.session_token_bytes,
            cache_block_tokens: p.cache_block_tokens,
            scratch_bytes: p.scratch_bytes,
            chunk: p.chunk,
            context: p.context,
            available_bytes: p.available_bytes,
            mapped: p.mapped != 0,
            fits: p.fits != 0,
        })
    }

    /// Components with exact counts, from a folder or a config.json alone.
    pub fn describe(context: &Context, path: impl AsRef<Path>) -> Result<Description> {
        let bytes = path_bytes(path.as_ref());
        let mut d = ptr::null_mut();
        let at = bytes.as_ptr() as *const c_char;
        call(|e| unsafe { sys::perigee_model_describe(context.0.as_ptr(), at, bytes.len(), &mut d, e) })?;
        let made = read_description(d);
        unsafe { sys::perigee_description_free(d) };
        made
    }
}

fn known(value: i64) -> Option<i64> {
    if value < 0 {
        None
    } else {
        Some(value)
    }
}

fn read_description(d: *const sys::perigee_description) -> Result<Description> {
    let mut t: sys::perigee_totals = unsafe { mem::zeroed() };
    t.struct_size = mem::size_of_val(&t);
    call(|e| unsafe { sys::perigee_description_totals(d, &mut t, e) })?;
    let count = unsafe { sys::perigee_description_count(d) };
    let mut components = Vec::with_capacity(count);
    for i in 0..count {
        let mut c: sys::perigee_component = unsafe { mem::zeroed() };
        c.struct_size = mem::size_of_val(&c);
        call(|e| unsafe { sys::perigee_description_component(d, i, &mut c, e) })?;
        components.push(Component {
            name: text(c.name).unwrap_or_default(),
            title: text(c.title).unwrap_or_default(),
            formula: text(c.formula).unwrap_or_default(),
            shape: text(c.shape).unwrap_or_default(),
            stored: text(c.stored).unwrap_or_default(),
            per_instance: c.per_instance,
            instances: c.instances,
            total: c.total,
            active: c.active,
            disk_total: known(c.disk_total),
            disk_bytes: known(c.disk_bytes),
        });
    }
    Ok(Description {
        family: text(t.family).unwrap_or_default(),
        parameters: t.parameters,
        active: t.active,
        disk_parameters: known(t.disk_parameters),
        disk_bytes: known(t.disk_bytes),
        layers: t.layers,
        kda_layers: t.kda_layers,
        mla_layers: t.mla_layers,
        moe_layers: t.moe_layers,
        components,
    })
}

impl Drop for Model {
    fn drop(&mut self) {
        unsafe { sys::perigee_model_free(self.raw.as_ptr()) }
    }
}
