//! Kernels of a host's own, for prototypes: products that run on the calling thread.
use crate::context::Context;
use crate::error::{call, text, Error, Result};
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

/// Calls of one function of a kernel with one shape.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct KernelTrace {
    pub kernel: String,
    pub function: String,
    pub op: String,
    pub rows: usize,
    pub cols: usize,
    pub tokens: usize,
    pub calls: i64,
    pub seconds: f64,
}

/// What running each call through a scalar kernel too came to.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelCheck {
    /// Calls that were compared.
    pub calls: i64,
    /// Calls that were not, for want of memory.
    pub skipped: i64,
    /// Calls with a value that is further off than is allowed.
    pub different: i64,
    /// Largest difference in parts of what is allowed.
    pub largest: f64,
    /// The first difference.
    pub first: Option<KernelDifference>,
}

/// A value that is not what the scalar kernel computes.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct KernelDifference {
    pub kernel: String,
    pub reference: String,
    pub op: String,
    pub function: String,
    pub output: String,
    pub rows: usize,
    pub cols: usize,
    pub tokens: usize,
    pub index: usize,
    pub width: usize,
    pub value: f64,
    pub expected: f64,
    pub allowed: f64,
}

/// How long one call takes on one thread, for random data.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct KernelTiming {
    pub rows: usize,
    pub cols: usize,
    pub tokens: usize,
    pub seconds: f64,
    pub bytes: i64,
    pub multiply_adds: i64,
}

impl Context {
    /// Calls of kernels so far, for a context with the option `trace_kernels`.
    pub fn kernel_trace(&self) -> Result<Vec<KernelTrace>> {
        let count = unsafe { sys::perigee_context_trace_count(self.0.as_ptr()) };
        let mut all = Vec::with_capacity(count);
        for i in 0..count {
            let mut t: sys::perigee_kernel_trace = unsafe { mem::zeroed() };
            t.struct_size = mem::size_of_val(&t);
            call(|e| unsafe { sys::perigee_context_trace(self.0.as_ptr(), i, &mut t, e) })?;
            all.push(KernelTrace {
                kernel: text(t.kernel).unwrap_or_default(),
                function: text(t.function).unwrap_or_default(),
                op: text(t.op).unwrap_or_default(),
                rows: t.rows,
                cols: t.cols,
                tokens: t.tokens,
                calls: t.calls,
                seconds: t.seconds,
            });
        }
        Ok(all)
    }
    /// Outcome of the comparison so far, for a context with the option `check_kernels`.
    pub fn kernel_check(&self) -> Result<KernelCheck> {
        let mut c: sys::perigee_kernel_check = unsafe { mem::zeroed() };
        c.struct_size = mem::size_of_val(&c);
        call(|e| unsafe { sys::perigee_context_check(self.0.as_ptr(), &mut c, e) })?;
        let first = text(c.kernel).map(|kernel| KernelDifference {
            kernel,
            reference: text(c.reference).unwrap_or_default(),
            op: text(c.op).unwrap_or_default(),
            function: text(c.function).unwrap_or_default(),
            output: text(c.output).unwrap_or_default(),
            rows: c.rows,
            cols: c.cols,
            tokens: c.tokens,
            index: c.index,
            width: c.width,
            value: c.value,
            expected: c.expected,
            allowed: c.allowed,
        });
        Ok(KernelCheck {
            calls: c.calls,
            skipped: c.skipped,
            different: c.different,
            largest: c.largest,
            first,
        })
    }
    /// Time row `index` of [`Context::kernels`] with `tokens` rows of activations, 1 to 256.
    pub fn time_kernel(&self, index: usize, tokens: usize) -> Result<KernelTiming> {
        let mut t: sys::perigee_kernel_timing = unsafe { mem::zeroed() };
        t.struct_size = mem::size_of_val(&t);
        call(|e| unsafe { sys::perigee_context_time_kernel(self.0.as_ptr(), index, tokens, &mut t, e) })?;
        Ok(KernelTiming {
            rows: t.rows,
            cols: t.cols,
            tokens: t.tokens,
            seconds: t.seconds,
            bytes: t.bytes,
            multiply_adds: t.multiply_adds,
        })
    }
    /// Number of rows in the table, those that are not called included.
    pub fn kernel_count(&self) -> usize {
        unsafe { sys::perigee_context_kernel_count(self.0.as_ptr()) }
    }
}
