//! Kimi language models inside a program of your own: the safe layer over the C library `perigee`.
//!
//! Handles may be dropped in any order: each holds what it needs. Which of them may cross threads follows the C header:
//! [`Model`], [`Context`] and [`Cancel`] are shared freely, a [`Session`] belongs to one thread at a time.
#![warn(missing_docs)]

mod context;
mod error;
mod model;
mod session;

pub use context::{Cancel, Context, Kernel, Options};
pub use error::{Error, Result, Status};
pub use model::{Component, Description, Info, Model, Plan};
pub use session::{decode_batch, Logits, Session, Statistics, Which};

/// Version of the library in use.
pub fn version() -> String {
    error::text(unsafe { perigee_sys::perigee_version() }).unwrap_or_default()
}
