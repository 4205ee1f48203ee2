//! Many generations over one model, and sessions that share a prefix.
use crate::context::Options;
use crate::error::{call, Error, Result};
use crate::generation::{GenerationOptions, Step};
use crate::model::Model;
use crate::session::Session;
use perigee_sys as sys;
use std::any::Any;
use std::ops::ControlFlow;
use std::os::raw::{c_int, c_void};
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::ptr::{self, NonNull};
use std::sync::{Arc, Mutex};

type Panic = Arc<Mutex<Option<Box<dyn Any + Send>>>>;
type Callback = dyn FnMut(i64, Result<Step>) -> ControlFlow<()> + Send;
struct Request {
    f: Box<Callback>,
    panic: Panic,
}

/// Requests that share passes over the weights; each gets what it would get alone.
pub struct Queue {
    raw: NonNull<sys::perigee_queue>,
    panic: Panic,
}
unsafe impl Send for Queue {}

impl Queue {
    /// Work on at most `active` requests at once, each in a session with `options`.
    pub fn new(model: &Model, options: Option<&Options>, active: usize) -> Result<Queue> {
        let mut p = ptr::null_mut();
        call(|e| unsafe { sys::perigee_queue_new(model.raw.as_ptr(), Options::raw(options), active, &mut p, e) })?;
        Ok(Queue {
            raw: NonNull::new(p).expect("a handle"),
            panic: Panic::default(),
        })
    }
    /// Aim at steps of at most this many seconds while prompts are taken in beside generations.
    pub fn step_seconds(&mut self, seconds: f64) -> Result<()> {
        call(|e| unsafe { sys::perigee_queue_set_step_seconds(self.raw.as_ptr(), seconds, e) })
    }
    /// Add a request; `f` gets its number and each step, progress of the prompt and the failure included. Gives the
    /// number of the request.
    pub fn submit(
        &mut self,
        prompt: &[i32],
        options: Option<&GenerationOptions>,
        f: impl FnMut(i64, Result<Step>) -> ControlFlow<()> + Send + 'static,
    ) -> Result<i64> {
        let request = Box::new(Request {
            f: Box::new(f),
            panic: self.panic.clone(),
        });
        let mut number = 0;
        let user = Box::into_raw(request) as *mut c_void; // released by the library, also on failure
        call(|e| unsafe {
            sys::perigee_queue_submit(
                self.raw.as_ptr(),
                prompt.as_ptr(),
                prompt.len(),
                GenerationOptions::raw(options),
                Some(on_step),
                user,
                Some(on_release),
                &mut number,
                e,
            )
        })?;
        Ok(number)
    }
    /// End a request at the next step.
    pub fn cancel(&mut self, request: i64) -> Result<()> {
        call(|e| unsafe { sys::perigee_queue_cancel(self.raw.as_ptr(), request, e) })
    }
    /// One pass; gives the number of requests that are not at their end.
    pub fn step(&mut self) -> Result<usize> {
        let mut left = 0;
        let result = call(|e| unsafe { sys::perigee_queue_step(self.raw.as_ptr(), &mut left, e) });
        let panicked = self.panic.lock().ok().and_then(|mut p| p.take());
        if let Some(panic) = panicked {
            resume_unwind(panic);
        }
        result.map(|()| left)
    }
    /// Steps until all requests are at their end.
    pub fn run(&mut self) -> Result<()> {
        while self.step()? > 0 {}
        Ok(())
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        unsafe { sys::perigee_queue_free(self.raw.as_ptr()) }
    }
}

unsafe extern "C" fn on_step(
    request: i64,
    step: *const sys::perigee_generated,
    error: *const sys::perigee_error,
    user: *mut c_void,
) -> c_int {
    let state = &mut *(user as *mut Request);
    let result = match error.is_null() {
        true => Ok(Step::read(&*step)),
        false => Err(Error::copy(sys::perigee_error_status(error), error)),
    };
    match catch_unwind(AssertUnwindSafe(|| (state.f)(request, result))) {
        Ok(ControlFlow::Continue(())) => 0,
        Ok(ControlFlow::Break(())) => 1,
        Err(p) => {
            if let Ok(mut slot) = state.panic.lock() {
                *slot = Some(p); // goes on in step(), not through C frames
            }
            1
        }
    }
}

unsafe extern "C" fn on_release(user: *mut c_void) {
    drop(Box::from_raw(user as *mut Request));
}

/// Forks of sessions under a byte limit, found again by the longest common prefix.
#[derive(Debug)]
pub struct PrefixCache {
    raw: NonNull<sys::perigee_prefix_cache>,
    vocabulary: usize,
}
unsafe impl Send for PrefixCache {}

impl PrefixCache {
    /// A cache that holds at most `bytes`.
    pub fn new(model: &Model, bytes: usize) -> Result<PrefixCache> {
        let vocabulary = model.info()?.vocabulary as usize;
        let mut p = ptr::null_mut();
        call(|e| unsafe { sys::perigee_prefix_cache_new(model.raw.as_ptr(), bytes as i64, &mut p, e) })?;
        Ok(PrefixCache {
            raw: NonNull::new(p).expect("a handle"),
            vocabulary,
        })
    }
    /// Keep a fork of the session as it is.
    pub fn put(&mut self, session: &mut Session) -> Result<()> {
        call(|e| unsafe { sys::perigee_prefix_cache_put(self.raw.as_ptr(), session.raw.as_ptr(), e) })
    }
    /// A session that holds the longest prefix of `tokens` that can be had, at most all but the last.
    pub fn get(&mut self, tokens: &[i32], options: Option<&Options>) -> Result<Session> {
        let mut p = ptr::null_mut();
        let (at, n, o) = (tokens.as_ptr(), tokens.len(), Options::raw(options));
        call(|e| unsafe { sys::perigee_prefix_cache_get(self.raw.as_ptr(), at, n, o, &mut p, e) })?;
        Session::adopt(p, self.vocabulary)
    }
    /// Bytes held now.
    pub fn bytes(&self) -> usize {
        unsafe { sys::perigee_prefix_cache_bytes(self.raw.as_ptr()) as usize }
    }
}

impl Drop for PrefixCache {
    fn drop(&mut self) {
        unsafe { sys::perigee_prefix_cache_free(self.raw.as_ptr()) }
    }
}
