//! Raw bindings of the C library `perigee`; see the crate `perigee` for the safe layer and the C headers for the contract.
#![allow(non_camel_case_types)]
#![allow(clippy::all)]
include!("bindings.rs");
