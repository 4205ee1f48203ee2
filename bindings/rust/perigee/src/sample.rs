//! From logits to tokens: argmax, samplers, constraints.
use crate::context::Context;
use crate::error::{call, Result};
use crate::text::Tokenizer;
use perigee_sys as sys;
use std::os::raw::c_char;
use std::ptr::{self, NonNull};
use std::slice;

/// Index of the greatest logit, the lowest one of equals.
pub fn argmax(logits: &[f32]) -> Result<i32> {
    let mut id = 0;
    call(|e| unsafe { sys::perigee_argmax(logits.as_ptr(), logits.len(), &mut id, e) })?;
    Ok(id)
}

/// The `k` greatest logits with their ids, greatest first.
pub fn top_k(context: &Context, logits: &[f32], k: usize) -> Result<Vec<(i32, f32)>> {
    let (mut ids, mut values) = (vec![0; k], vec![0.0; k]);
    let (at, n) = (logits.as_ptr(), logits.len());
    call(|e| unsafe { sys::perigee_top_k(context.0.as_ptr(), at, n, k, ids.as_mut_ptr(), values.as_mut_ptr(), e) })?;
    Ok(ids.into_iter().zip(values).collect())
}

/// Natural logarithms of the probabilities of tokens under softmax of the logits.
pub fn log_probabilities(logits: &[f32], ids: &[i32]) -> Result<Vec<f64>> {
    let mut out = vec![0.0; ids.len()];
    let (at, n) = (logits.as_ptr(), logits.len());
    call(|e| unsafe { sys::perigee_log_probabilities(at, n, ids.as_ptr(), ids.len(), out.as_mut_ptr(), e) })?;
    Ok(out)
}

/// A chain of stages that turns a row of logits into a token id; they work in the order in which they are added.
#[derive(Debug)]
pub struct Sampler(pub(crate) NonNull<sys::perigee_sampler>);
// The header says: one thread at a time, any thread; not Sync.
unsafe impl Send for Sampler {}

macro_rules! stages {
    ($($(#[$doc:meta])* $name:ident($($arg:ident: $type:ty),*) = $c:ident;)*) => {
        impl Sampler {
            $($(#[$doc])* pub fn $name(&mut self, $($arg: $type),*) -> Result<&mut Self> {
                call(|e| unsafe { sys::$c(self.0.as_ptr(), $($arg,)* e) })?;
                Ok(self)
            })*
        }
    };
}
stages! {
    /// Divide the positive logits of tokens among the last `window` of the history by `penalty`, multiply the others.
    repetition(penalty: f64, window: usize) = perigee_sampler_add_repetition;
    /// Take `penalty` off the logits of tokens among the last `window` of the history.
    presence(penalty: f64, window: usize) = perigee_sampler_add_presence;
    /// As `presence`, times the number of occurrences.
    frequency(penalty: f64, window: usize) = perigee_sampler_add_frequency;
    /// Divide logits by `temperature`; 0 does as `greedy`.
    temperature(temperature: f64) = perigee_sampler_add_temperature;
    /// Keep the `k` greatest.
    top_k(k: usize) = perigee_sampler_add_top_k;
    /// Keep the fewest of the greatest whose probabilities sum to at least `p`.
    top_p(p: f64) = perigee_sampler_add_top_p;
    /// Keep those of at least `p` times the probability of the greatest.
    min_p(p: f64) = perigee_sampler_add_min_p;
    /// Keep the greatest alone.
    greedy() = perigee_sampler_add_greedy;
}

impl Sampler {
    /// An empty chain with seed 0: it takes the greatest logit.
    pub fn new(context: &Context) -> Result<Sampler> {
        let mut p = ptr::null_mut();
        call(|e| unsafe { sys::perigee_sampler_new(context.0.as_ptr(), &mut p, e) })?;
        Ok(Sampler(NonNull::new(p).expect("a handle")))
    }
    /// Copy chain, seed, place in the random stream, and history.
    pub fn try_clone(&self) -> Result<Sampler> {
        let mut p = ptr::null_mut();
        call(|e| unsafe { sys::perigee_sampler_clone(self.0.as_ptr(), &mut p, e) })?;
        Ok(Sampler(NonNull::new(p).expect("a handle")))
    }
    pub(crate) fn own(raw: *mut sys::perigee_sampler) -> Sampler {
        Sampler(NonNull::new(raw).expect("a handle"))
    }
    /// Add to the logits of single tokens.
    pub fn bias(&mut self, biases: &[(i32, f32)]) -> Result<&mut Self> {
        let ids: Vec<i32> = biases.iter().map(|b| b.0).collect();
        let values: Vec<f32> = biases.iter().map(|b| b.1).collect();
        let (i, v) = (ids.as_ptr(), values.as_ptr());
        call(|e| unsafe { sys::perigee_sampler_add_bias(self.0.as_ptr(), i, v, ids.len(), e) })?;
        Ok(self)
    }
    /// Set the seed and go to the start of its random stream.
    pub fn seed(&mut self, seed: u64) -> &mut Self {
        unsafe { sys::perigee_sampler_set_seed(self.0.as_ptr(), seed) };
        self
    }
    /// Choose a token, among those that can go on in `constraint` if there is one. The history is left alone.
    pub fn sample(&mut self, logits: &[f32], constraint: Option<&mut Constraint>) -> Result<i32> {
        let mut id = 0;
        let c = constraint.map_or(ptr::null_mut(), |c| c.0.as_ptr());
        let (at, n) = (logits.as_ptr(), logits.len());
        call(|e| unsafe { sys::perigee_sampler_sample_constrained(self.0.as_ptr(), at, n, c, &mut id, e) })?;
        Ok(id)
    }
    /// Append tokens to the history that penalties look at.
    pub fn accept(&mut self, ids: &[i32]) -> Result<()> {
        call(|e| unsafe { sys::perigee_sampler_accept(self.0.as_ptr(), ids.as_ptr(), ids.len(), e) })
    }
    /// Forget the history and go to the start of the random stream.
    pub fn reset(&mut self) {
        unsafe { sys::perigee_sampler_reset(self.0.as_ptr()) }
    }
    pub(crate) fn raw(sampler: Option<&Sampler>) -> *const sys::perigee_sampler {
        sampler.map_or(ptr::null(), |s| s.0.as_ptr())
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        unsafe { sys::perigee_sampler_free(self.0.as_ptr()) }
    }
}

/// Whether a constrained text may end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completeness {
    /// Something must follow.
    Open,
    /// It may end here, or go on.
    MayEnd,
    /// Nothing else can follow.
    Whole,
}

/// A place in a text that a JSON schema or a regular expression describes.
#[derive(Debug)]
pub struct Constraint(pub(crate) NonNull<sys::perigee_constraint>);
unsafe impl Send for Constraint {}

impl Constraint {
    /// The start of a JSON text that is valid under `schema`.
    pub fn from_schema(tokenizer: &Tokenizer, schema: &str) -> Result<Constraint> {
        let mut p = ptr::null_mut();
        let (at, n) = (schema.as_ptr() as *const c_char, schema.len());
        call(|e| unsafe { sys::perigee_constraint_from_schema(tokenizer.raw.as_ptr(), at, n, &mut p, e) })?;
        Ok(Constraint(NonNull::new(p).expect("a handle")))
    }
    /// The start of a text that `pattern` matches as a whole.
    pub fn from_regex(tokenizer: &Tokenizer, pattern: &str) -> Result<Constraint> {
        let mut p = ptr::null_mut();
        let (at, n) = (pattern.as_ptr() as *const c_char, pattern.len());
        call(|e| unsafe { sys::perigee_constraint_from_regex(tokenizer.raw.as_ptr(), at, n, &mut p, e) })?;
        Ok(Constraint(NonNull::new(p).expect("a handle")))
    }
    /// A place of its own at the same point.
    pub fn try_clone(&self) -> Result<Constraint> {
        let mut p = ptr::null_mut();
        call(|e| unsafe { sys::perigee_constraint_clone(self.0.as_ptr(), &mut p, e) })?;
        Ok(Constraint(NonNull::new(p).expect("a handle")))
    }
    /// The tokens that can go on: bit id % 64 of word id / 64, and the number of bits.
    pub fn allowed(&mut self) -> Result<(&[u64], usize)> {
        let (mut p, mut n) = (ptr::null(), 0);
        call(|e| unsafe { sys::perigee_constraint_allowed(self.0.as_ptr(), &mut p, &mut n, e) })?;
        match n {
            0 => Ok((&[], 0)),
            _ => Ok((unsafe { slice::from_raw_parts(p, (n + 63) / 64) }, n)),
        }
    }
    /// Move over a token.
    pub fn accept(&mut self, id: i32) -> Result<()> {
        call(|e| unsafe { sys::perigee_constraint_accept(self.0.as_ptr(), id, e) })
    }
    /// Whether the text may end here.
    pub fn complete(&self) -> Completeness {
        match unsafe { sys::perigee_constraint_complete(self.0.as_ptr()) } {
            0 => Completeness::Open,
            2 => Completeness::Whole,
            _ => Completeness::MayEnd,
        }
    }
}

impl Drop for Constraint {
    fn drop(&mut self) {
        unsafe { sys::perigee_constraint_free(self.0.as_ptr()) }
    }
}
