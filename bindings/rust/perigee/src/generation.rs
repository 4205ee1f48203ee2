//! Generations: token after token as an iterator, and scores.
use crate::context::{Cancel, Context};
use crate::error::{call, text, Result};
use crate::sample::{Constraint, Sampler};
use crate::session::Session;
use crate::text::str_of;
use perigee_sys as sys;
use std::marker::PhantomData;
use std::mem;
use std::os::raw::c_char;
use std::ptr::{self, NonNull};
use std::slice;

/// Why a generation came to its end; numbers of a newer library too.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Finish(sys::perigee_finish);

#[allow(missing_docs)]
impl Finish {
    pub const STOP: Finish = Finish(sys::PERIGEE_FINISH_STOP);
    pub const STOP_STRING: Finish = Finish(sys::PERIGEE_FINISH_STOP_STRING);
    pub const LENGTH: Finish = Finish(sys::PERIGEE_FINISH_LENGTH);
    pub const CANCELLED: Finish = Finish(sys::PERIGEE_FINISH_CANCELLED);
    pub const CONTEXT_FULL: Finish = Finish(sys::PERIGEE_FINISH_CONTEXT_FULL);
    pub const CALLBACK: Finish = Finish(sys::PERIGEE_FINISH_CALLBACK);
}

impl Finish {
    /// As "stop", "length".
    pub fn name(self) -> String {
        text(unsafe { sys::perigee_finish_name(self.0) }).unwrap_or_default()
    }
}

/// How to generate: greedy, with the model's stop ids and no limit but the context, unless told otherwise.
#[derive(Debug)]
pub struct GenerationOptions(NonNull<sys::perigee_generation_options>);
unsafe impl Send for GenerationOptions {}

impl GenerationOptions {
    /// The defaults.
    pub fn new(context: &Context) -> Result<GenerationOptions> {
        let mut p = ptr::null_mut();
        call(|e| unsafe { sys::perigee_generation_options_new(context.0.as_ptr(), &mut p, e) })?;
        Ok(GenerationOptions(NonNull::new(p).expect("a handle")))
    }
    pub(crate) fn raw(options: Option<&GenerationOptions>) -> *const sys::perigee_generation_options {
        options.map_or(ptr::null(), |o| o.0.as_ptr())
    }
    /// Sample with a copy of `sampler` as it is now.
    pub fn sampler(&mut self, sampler: Option<&Sampler>) -> Result<&mut Self> {
        let s = Sampler::raw(sampler);
        call(|e| unsafe { sys::perigee_generation_options_set_sampler(self.0.as_ptr(), s, e) })?;
        Ok(self)
    }
    /// Begin with a copy of `constraint` as it is now.
    pub fn constraint(&mut self, constraint: Option<&Constraint>) -> Result<&mut Self> {
        let c = constraint.map_or(ptr::null(), |c| c.0.as_ptr() as *const _);
        call(|e| unsafe { sys::perigee_generation_options_set_constraint(self.0.as_ptr(), c, e) })?;
        Ok(self)
    }
    /// Stop behind this many tokens.
    pub fn max_tokens(&mut self, count: Option<usize>) -> Result<&mut Self> {
        let n = count.map_or(-1, |c| c as i64);
        call(|e| unsafe { sys::perigee_generation_options_set_max_tokens(self.0.as_ptr(), n, e) })?;
        Ok(self)
    }
    /// Stop at this id too.
    pub fn stop_id(&mut self, id: i32) -> Result<&mut Self> {
        call(|e| unsafe { sys::perigee_generation_options_add_stop_id(self.0.as_ptr(), id, e) })?;
        Ok(self)
    }
    /// Whether to stop at the end ids of the model.
    pub fn default_stops(&mut self, enabled: bool) -> Result<&mut Self> {
        call(|e| unsafe { sys::perigee_generation_options_set_default_stops(self.0.as_ptr(), enabled as _, e) })?;
        Ok(self)
    }
    /// Stop where this text comes up; it is not emitted.
    pub fn stop_string(&mut self, text: &str) -> Result<&mut Self> {
        let (at, n) = (text.as_ptr() as *const c_char, text.len());
        call(|e| unsafe { sys::perigee_generation_options_add_stop_string(self.0.as_ptr(), at, n, e) })?;
        Ok(self)
    }
    /// Log-probabilities with each token, also of the `top` most probable ones.
    pub fn log_probabilities(&mut self, top: Option<u16>) -> Result<&mut Self> {
        let n = top.map_or(-1, i32::from);
        call(|e| unsafe { sys::perigee_generation_options_set_log_probabilities(self.0.as_ptr(), n, e) })?;
        Ok(self)
    }
    /// Hold a cancel handle: a trigger stops within one token.
    pub fn cancel(&mut self, cancel: Option<&Cancel>) -> Result<&mut Self> {
        let c = Cancel::raw(cancel);
        call(|e| unsafe { sys::perigee_generation_options_set_cancel(self.0.as_ptr(), c, e) })?;
        Ok(self)
    }
}

impl Drop for GenerationOptions {
    fn drop(&mut self) {
        unsafe { sys::perigee_generation_options_free(self.0.as_ptr()) }
    }
}

/// One step of a generation.
#[derive(Clone, Debug)]
pub struct Step {
    /// The token, a stop id included; `None` if the end came without one.
    pub id: Option<i32>,
    /// Whole characters that became certain.
    pub text: String,
    /// The end, if this is it.
    pub finish: Option<Finish>,
    /// Of the token, if asked for.
    pub log_probability: Option<f64>,
    /// The most probable tokens with their log-probabilities, if asked for.
    pub top: Vec<(i32, f64)>,
    /// That this step took, the first one with the prompt.
    pub seconds: f64,
    /// Tokens of the prompt taken in so far.
    pub prompt_tokens: usize,
    /// Tokens generated so far.
    pub tokens: usize,
}

impl Step {
    pub(crate) unsafe fn read(g: &sys::perigee_generated) -> Step {
        let top = match g.top_count {
            0 => Vec::new(),
            n => slice::from_raw_parts(g.top_ids, n)
                .iter()
                .copied()
                .zip(slice::from_raw_parts(g.top_log_probabilities, n).iter().copied())
                .collect(),
        };
        Step {
            id: if g.id < 0 { None } else { Some(g.id) },
            text: str_of(g.text, g.text_length).to_owned(),
            finish: match g.finish {
                sys::PERIGEE_FINISH_NONE => None,
                f => Some(Finish(f)),
            },
            log_probability: if g.log_probability.is_nan() {
                None
            } else {
                Some(g.log_probability)
            },
            top,
            seconds: g.seconds,
            prompt_tokens: g.prompt_tokens as usize,
            tokens: g.tokens as usize,
        }
    }
}

/// A generation: an iterator of steps, the last of which says why it ended. It has its session to itself. A step that
/// failed may be asked for again.
#[derive(Debug)]
pub struct Generation<'s> {
    raw: NonNull<sys::perigee_generation>,
    ended: bool,
    session: PhantomData<&'s mut Session>,
}
// The header says: one thread at a time, any thread.
unsafe impl Send for Generation<'_> {}

impl Session {
    /// Take in `prompt` (with none, go on from what is there) and generate.
    pub fn generate(&mut self, prompt: &[i32], options: Option<&GenerationOptions>) -> Result<Generation<'_>> {
        let mut p = ptr::null_mut();
        let (at, n, o) = (prompt.as_ptr(), prompt.len(), GenerationOptions::raw(options));
        call(|e| unsafe { sys::perigee_generation_new(self.raw.as_ptr(), at, n, o, &mut p, e) })?;
        Ok(Generation {
            raw: NonNull::new(p).expect("a handle"),
            ended: false,
            session: PhantomData,
        })
    }

    /// Take in ids and give the log-probabilities of all but the first, each behind those before it.
    pub fn score(&mut self, ids: &[i32], cancel: Option<&Cancel>) -> Result<Vec<f64>> {
        let mut out = vec![0.0; ids.len().saturating_sub(1)];
        let (at, n, to) = (ids.as_ptr(), ids.len(), out.as_mut_ptr());
        call(|e| unsafe { sys::perigee_score(self.raw.as_ptr(), at, n, to, Cancel::raw(cancel), e) })?;
        Ok(out)
    }
}

impl Generation<'_> {
    /// Copy the sampler as it is behind the tokens so far: with it, and the newest token as prompt, the same tokens
    /// follow as without a break.
    pub fn sampler(&self) -> Result<Sampler> {
        let mut p = ptr::null_mut();
        call(|e| unsafe { sys::perigee_generation_sampler(self.raw.as_ptr(), &mut p, e) })?;
        Ok(Sampler::own(p))
    }
}

impl Iterator for Generation<'_> {
    type Item = Result<Step>;

    fn next(&mut self) -> Option<Result<Step>> {
        if self.ended {
            return None;
        }
        let mut g: sys::perigee_generated = unsafe { mem::zeroed() };
        g.struct_size = mem::size_of_val(&g);
        if let Err(e) = call(|e| unsafe { sys::perigee_generation_next(self.raw.as_ptr(), &mut g, e) }) {
            return Some(Err(e));
        }
        let step = unsafe { Step::read(&g) };
        self.ended = step.finish.is_some();
        Some(Ok(step))
    }
}

impl Drop for Generation<'_> {
    fn drop(&mut self) {
        unsafe { sys::perigee_generation_free(self.raw.as_ptr()) }
    }
}
