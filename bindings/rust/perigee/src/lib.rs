//! Kimi language models inside a program of your own: the safe layer over the C library `perigee`.
//!
//! Handles may be dropped in any order: each holds what it needs. Which of them may cross threads follows the C header:
//! [`Model`], [`Context`], [`Tokenizer`], [`Chat`] and [`Cancel`] are shared freely, all others belong to one thread at
//! a time.
//!
//! Logits are borrowed from their session; those of an earlier step do not compile:
//! ```compile_fail,E0499
//! fn stale(session: &mut perigee::Session) -> perigee::Result<()> {
//!     let old = session.decode(&[1], perigee::Which::Last)?;
//!     session.decode(&[2], perigee::Which::Last)?;
//!     println!("{}", old.row(0)[0]);
//!     Ok(())
//! }
//! ```
//! while this does:
//! ```
//! fn fresh(session: &mut perigee::Session) -> perigee::Result<()> {
//!     let old = session.decode(&[1], perigee::Which::Last)?;
//!     println!("{}", old.row(0)[0]);
//!     session.decode(&[2], perigee::Which::Last)?;
//!     Ok(())
//! }
//! ```
//! A session is not shared between threads:
//! ```compile_fail,E0277
//! fn share<T: Sync>() {}
//! share::<perigee::Session>();
//! ```
#![warn(missing_docs)]

mod context;
mod error;
mod generation;
mod kernel;
mod model;
mod queue;
mod sample;
mod session;
mod text;

pub use context::{options, Cancel, Context, Kernel, Log, OptionInfo, Options};
pub use error::{Error, Result, Status};
pub use generation::{Finish, Generation, GenerationOptions, Step};
pub use kernel::{KernelCheck, KernelDifference, KernelSet, KernelTiming, KernelTrace, Product, Weight};
pub use model::{Component, Description, Info, Model, Plan};
pub use queue::{PrefixCache, Queue};
pub use sample::{argmax, log_probabilities, top_k, Completeness, Constraint, Sampler};
pub use session::{decode_batch, Logits, Session, Statistics, Which};
pub use text::{Chat, ChatOptions, Decoder, Delta, Parser, Segment, Tokenizer, TokenizerInfo};

/// Version of the library in use.
pub fn version() -> String {
    error::text(unsafe { perigee_sys::perigee_version() }).unwrap_or_default()
}
