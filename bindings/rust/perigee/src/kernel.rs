//! Kernels of a host's own, for prototypes: products that run on the calling thread.
use crate::context::Context;
use crate::error::{call, Error, Result};
use perigee_sys as sys;
use std::ffi::CString;
use std::mem;
use std::os::raw::c_void;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::ptr::{self, NonNull};
use std::slice;

/// Rows to merge into the table of a context.
#[derive(Debug)]
pub struct KernelSet(pub(crate) NonNull<sys::perigee_kernel_set>);
unsafe impl Send for KernelSet {}

/// Stored forms of weights that a host's product can be for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Weight {
    F32,
    F16,
    BF16,
}

/// A product: y[t, r] = sum over c of w[first + r, c] x[t, c].
pub struct Product<'a> {
    /// Rows of weights to multiply by, from `first` on.
    pub first: usize,
    /// Number of them.
    pub count: usize,
    /// Width of a row.
    pub columns: usize,
    /// Rows of activations.
    pub tokens: usize,
    weights: &'a sys::perigee_matrix,
    x: *const f32,
    ldx: usize,
}

impl Product<'_> {
    /// Row `t` of the activations.
    pub fn x(&self, t: usize) -> &[f32] {
        assert!(t < self.tokens);
        unsafe { slice::from_raw_parts(self.x.add(t * self.ldx), self.columns) }
    }
    /// Bytes of a row of weights as they are stored, `row` from 0 to `count` - 1.
    pub fn weights(&self, row: usize) -> &[u8] {
        assert!(row < self.count);
        let width = match self.weights.dtype {
            d if d == sys::PERIGEE_DTYPE_F32.0 => 4,
            _ => 2,
        };
        let at = (self.first + row) * self.weights.row_bytes;
        unsafe { slice::from_raw_parts((self.weights.codes as *const u8).add(at), self.columns * width) }
    }
}

type Multiply = dyn Fn(&Product, &mut dyn FnMut(usize, usize, f32)) -> bool + Send + Sync;

impl KernelSet {
    /// An empty set.
    pub fn new() -> Result<KernelSet> {
        let mut p = ptr::null_mut();
        call(|e| unsafe { sys::perigee_kernel_set_new(&mut p, e) })?;
        Ok(KernelSet(NonNull::new(p).expect("a handle")))
    }
    /// Add a product for weights of one form: `f` gets what to multiply and a function that takes token, row and
    /// result; false fails the step. It goes before the built-in ones.
    pub fn product(
        &mut self,
        name: &str,
        weight: Weight,
        f: impl Fn(&Product, &mut dyn FnMut(usize, usize, f32)) -> bool + Send + Sync + 'static,
    ) -> Result<&mut Self> {
        let name = CString::new(name).map_err(|_| Error::argument("a NUL in the name"))?;
        let isa = CString::new("host").expect("no NUL");
        let mut row: sys::perigee_kernel_row = unsafe { mem::zeroed() };
        row.struct_size = mem::size_of_val(&row);
        row.op = sys::PERIGEE_OP_MATMUL.0;
        row.dtype = match weight {
            Weight::F32 => sys::PERIGEE_DTYPE_F32.0,
            Weight::F16 => sys::PERIGEE_DTYPE_F16.0,
            Weight::BF16 => sys::PERIGEE_DTYPE_BF16.0,
        };
        row.flags = sys::PERIGEE_KERNEL_HOST.0;
        row.priority = 1000;
        row.name = name.as_ptr();
        row.isa = isa.as_ptr();
        row.numerics = name.as_ptr();
        row.row_tile = 1;
        row.token_tile = 1;
        let boxed: Box<Box<Multiply>> = Box::new(Box::new(f));
        row.user = Box::into_raw(boxed) as *mut c_void; // released by the library, also on failure
        row.run.matmul.host = Some(multiply);
        call(|e| unsafe { sys::perigee_kernel_set_add(self.0.as_ptr(), &row, Some(release), e) })?;
        Ok(self)
    }
}

impl Drop for KernelSet {
    fn drop(&mut self) {
        unsafe { sys::perigee_kernel_set_free(self.0.as_ptr()) }
    }
}

unsafe extern "C" fn multiply(
    user: *mut c_void,
    w: *const sys::perigee_matrix,
    first: usize,
    count: usize,
    x: *const f32,
    ldx: usize,
    m: usize,
    y: *mut f32,
    ldy: usize,
) -> i32 {
    let f = &*(user as *const Box<Multiply>);
    let product = Product {
        first,
        count,
        columns: (*w).cols,
        tokens: m,
        weights: &*w,
        x,
        ldx,
    };
    let mut put = |t: usize, r: usize, value: f32| {
        assert!(t < m && r < count);
        *y.add(t * ldy + r) = value;
    };
    match catch_unwind(AssertUnwindSafe(|| f(&product, &mut put))) {
        Ok(true) => 0,
        _ => 1, // a panic must not unwind through C frames; the step fails
    }
}

unsafe extern "C" fn release(user: *mut c_void) {
    drop(Box::from_raw(user as *mut Box<Multiply>));
}

impl Context {
    /// Number of rows in the table, those that are not called included.
    pub fn kernel_count(&self) -> usize {
        unsafe { sys::perigee_context_kernel_count(self.0.as_ptr()) }
    }
}
