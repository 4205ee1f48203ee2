//! Sessions: steps, fork, rewind, state.
use crate::context::{Cancel, Options};
use crate::error::{call, Error, Result, Status};
use crate::model::{path_bytes, Model};
use crate::sample::Sampler;
use perigee_sys as sys;
use std::any::Any;
use std::io::{self, Read, Write};
use std::mem;
use std::ops::ControlFlow;
use std::os::raw::{c_char, c_int, c_void};
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::path::Path;
use std::ptr::{self, NonNull};
use std::slice;

/// Which positions of a step get logits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// None: the head is not computed.
    None,
    /// The last token's.
    Last,
    /// Every token's.
    All,
}

impl Which {
    pub(crate) fn raw(self) -> sys::perigee_logits {
        match self {
            Which::None => sys::PERIGEE_LOGITS_NONE,
            Which::Last => sys::PERIGEE_LOGITS_LAST,
            Which::All => sys::PERIGEE_LOGITS_ALL,
        }
    }
}

/// Logits [rows, vocabulary], borrowed from the session until its next call.
#[derive(Debug)]
pub struct Logits<'a> {
    values: &'a [f32],
    rows: usize,
}

impl<'a> Logits<'a> {
    pub(crate) unsafe fn new(p: *const f32, rows: usize, vocabulary: usize) -> Logits<'a> {
        Logits {
            values: match p.is_null() {
                true => &[],
                false => slice::from_raw_parts(p, rows * vocabulary),
            },
            rows,
        }
    }
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }
    /// One row.
    pub fn row(&self, index: usize) -> &'a [f32] {
        let width = self.values.len() / self.rows.max(1);
        &self.values[index * width..(index + 1) * width]
    }
    /// All rows, one after the other.
    pub fn values(&self) -> &'a [f32] {
        self.values
    }
}

/// Counters of a session.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Statistics {
    pub tokens: i64,
    pub steps: i64,
    pub seconds: f64,
    pub weight_bytes: i64,
    pub expert_reads: i64,
    pub cache_hits: i64,
    pub wait_seconds: f64,
    pub memory_bytes: i64,
}

/// State of one sequence. Every call that changes it takes `&mut self`, so that stale logits don't compile.
#[derive(Debug)]
pub struct Session {
    pub(crate) raw: NonNull<sys::perigee_session>,
    vocabulary: usize,
}
// The header says: one thread at a time, any thread; not Sync.
unsafe impl Send for Session {}

impl Session {
    /// An empty session; it holds the model.
    pub fn new(model: &Model, options: Option<&Options>) -> Result<Session> {
        let mut p = ptr::null_mut();
        call(|e| unsafe { sys::perigee_session_new(model.raw.as_ptr(), Options::raw(options), &mut p, e) })?;
        Session::adopt(p, model.info()?.vocabulary as usize)
    }

    pub(crate) fn adopt(p: *mut sys::perigee_session, vocabulary: usize) -> Result<Session> {
        Ok(Session {
            raw: NonNull::new(p).expect("a handle"),
            vocabulary,
        })
    }

    /// Tokens taken in so far.
    pub fn position(&self) -> usize {
        unsafe { sys::perigee_session_position(self.raw.as_ptr()) as usize }
    }
    /// Tokens that fit in all.
    pub fn context(&self) -> usize {
        unsafe { sys::perigee_session_context(self.raw.as_ptr()) as usize }
    }
    /// Back to the empty state.
    pub fn reset(&mut self) {
        unsafe { sys::perigee_session_reset(self.raw.as_ptr()) }
    }

    /// Take in a prompt or a token.
    pub fn decode(&mut self, tokens: &[i32], which: Which) -> Result<Logits<'_>> {
        self.decode_with(tokens, which, None)
    }

    /// As `decode`, with a cancel handle.
    pub fn decode_with(&mut self, tokens: &[i32], which: Which, cancel: Option<&Cancel>) -> Result<Logits<'_>> {
        let (mut p, mut rows) = (ptr::null(), 0);
        call(|e| unsafe {
            sys::perigee_decode_step(
                self.raw.as_ptr(),
                tokens.as_ptr(),
                tokens.len(),
                which.raw(),
                &mut p,
                &mut rows,
                Cancel::raw(cancel),
                e,
            )
        })?;
        Ok(unsafe { Logits::new(p, rows, self.vocabulary) })
    }

    /// The bare C call, to measure by.
    #[doc(hidden)]
    pub fn decode_raw(&mut self, tokens: &[i32]) -> bool {
        let (mut p, at, n) = (ptr::null(), tokens.as_ptr(), tokens.len());
        let last = sys::PERIGEE_LOGITS_LAST;
        let (raw, rows) = (self.raw.as_ptr(), ptr::null_mut());
        unsafe {
            sys::perigee_decode_step(raw, at, n, last, &mut p, rows, ptr::null_mut(), ptr::null_mut())
                == sys::PERIGEE_OK
        }
    }

    /// Make the session hold exactly `tokens`, keeping the longest prefix that it has. Also returns its length.
    pub fn feed(&mut self, tokens: &[i32], which: Which, cancel: Option<&Cancel>) -> Result<(Logits<'_>, usize)> {
        let (mut p, mut rows, mut kept) = (ptr::null(), 0, 0);
        call(|e| unsafe {
            sys::perigee_session_feed(
                self.raw.as_ptr(),
                tokens.as_ptr(),
                tokens.len(),
                which.raw(),
                &mut p,
                &mut rows,
                &mut kept,
                Cancel::raw(cancel),
                e,
            )
        })?;
        Ok((unsafe { Logits::new(p, rows, self.vocabulary) }, kept))
    }

    /// Ids taken in so far.
    pub fn tokens(&self) -> &[i32] {
        let mut p = ptr::null();
        let n = unsafe { sys::perigee_session_tokens(self.raw.as_ptr(), &mut p) };
        match n {
            0 => &[],
            _ => unsafe { slice::from_raw_parts(p, n) },
        }
    }

    /// A second session at the same position.
    pub fn fork(&mut self) -> Result<Session> {
        let mut p = ptr::null_mut();
        call(|e| unsafe { sys::perigee_session_fork(self.raw.as_ptr(), &mut p, e) })?;
        Session::adopt(p, self.vocabulary)
    }

    /// Go back to an earlier position, exactly or not at all.
    pub fn rewind(&mut self, position: usize, cancel: Option<&Cancel>) -> Result<()> {
        call(|e| unsafe {
            sys::perigee_session_rewind(
                self.raw.as_ptr(),
                position as i64,
                ptr::null_mut(),
                Cancel::raw(cancel),
                e,
            )
        })
    }

    /// Bytes that a save takes now.
    pub fn state_size(&self, sampler: Option<&Sampler>) -> Result<usize> {
        let mut size = 0;
        call(|e| unsafe { sys::perigee_state_size(self.raw.as_ptr(), Sampler::raw(sampler), &mut size, e) })?;
        Ok(size)
    }

    /// See the residual stream after each layer: layer, position, width, rows one after the other. Break fails the step.
    pub fn set_trace(&mut self, f: impl FnMut(usize, usize, usize, &[f32]) -> ControlFlow<()> + Send + 'static) {
        let boxed: Box<Trace> = Box::new(Box::new(f));
        let user = Box::into_raw(boxed) as *mut c_void; // released by the library
        unsafe { sys::perigee_session_set_trace(self.raw.as_ptr(), Some(trace), user, Some(release_trace)) }
    }
    /// No more trace.
    pub fn clear_trace(&mut self) {
        unsafe { sys::perigee_session_set_trace(self.raw.as_ptr(), None, ptr::null_mut(), None) }
    }

    /// Counters since the session was made.
    pub fn statistics(&self) -> Result<Statistics> {
        let mut s: sys::perigee_statistics = unsafe { mem::zeroed() };
        s.struct_size = mem::size_of_val(&s);
        call(|e| unsafe { sys::perigee_session_statistics(self.raw.as_ptr(), &mut s, e) })?;
        Ok(Statistics {
            tokens: s.tokens,
            steps: s.steps,
            seconds: s.seconds,
            weight_bytes: s.weight_bytes,
            expert_reads: s.expert_reads,
            cache_hits: s.cache_hits,
            wait_seconds: s.wait_seconds,
            memory_bytes: s.memory_bytes,
        })
    }

    /// Save position, cache and states, and a sampler if one is given, to a writer.
    pub fn save<W: Write>(&self, sampler: Option<&Sampler>, mut to: W) -> io::Result<()> {
        let mut stream = Stream::new(&mut to);
        let result = call(|e| unsafe {
            sys::perigee_state_save_to(
                self.raw.as_ptr(),
                Sampler::raw(sampler),
                Some(write::<W>),
                stream.user(),
                e,
            )
        });
        stream.finish(result)
    }

    /// Load what `save` wrote; on failure the session is unchanged.
    pub fn load<R: Read>(&mut self, sampler: Option<&mut Sampler>, mut from: R) -> io::Result<()> {
        let sampler = sampler.map_or(ptr::null_mut(), |s| s.0.as_ptr());
        let mut stream = Stream::new(&mut from);
        let result = call(|e| unsafe {
            sys::perigee_state_load_from(self.raw.as_ptr(), sampler, Some(read::<R>), stream.user(), e)
        });
        stream.finish(result)
    }

    /// Save to a file, atomically.
    pub fn save_file(&self, sampler: Option<&Sampler>, path: impl AsRef<Path>) -> Result<()> {
        let b = path_bytes(path.as_ref());
        let at = b.as_ptr() as *const c_char;
        call(|e| unsafe { sys::perigee_state_save_file(self.raw.as_ptr(), Sampler::raw(sampler), at, b.len(), e) })
    }

    /// Load from a file.
    pub fn load_file(&mut self, sampler: Option<&mut Sampler>, path: impl AsRef<Path>) -> Result<()> {
        let b = path_bytes(path.as_ref());
        let at = b.as_ptr() as *const c_char;
        let sampler = sampler.map_or(ptr::null_mut(), |s| s.0.as_ptr());
        call(|e| unsafe { sys::perigee_state_load_file(self.raw.as_ptr(), sampler, at, b.len(), e) })
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        unsafe { sys::perigee_session_free(self.raw.as_ptr()) }
    }
}

/// A reader or writer behind a C callback, with what went wrong in it.
struct Stream<'a, T> {
    inner: &'a mut T,
    failed: Option<io::Error>,
    panic: Option<Box<dyn Any + Send>>,
}

impl<'a, T> Stream<'a, T> {
    fn new(inner: &'a mut T) -> Self {
        Stream {
            inner,
            failed: None,
            panic: None,
        }
    }
    fn user(&mut self) -> *mut c_void {
        self as *mut Self as *mut c_void
    }
    fn finish(self, result: Result<()>) -> io::Result<()> {
        if let Some(panic) = self.panic {
            resume_unwind(panic);
        }
        match (self.failed, result) {
            (Some(e), _) => Err(e),
            (None, Err(e)) => Err(io::Error::new(io::ErrorKind::Other, e)),
            (None, Ok(())) => Ok(()),
        }
    }
}

unsafe extern "C" fn write<W: Write>(data: *const c_void, size: usize, user: *mut c_void) -> c_int {
    let stream = &mut *(user as *mut Stream<W>);
    let bytes = slice::from_raw_parts(data as *const u8, size);
    match catch_unwind(AssertUnwindSafe(|| stream.inner.write_all(bytes))) {
        Ok(Ok(())) => 0,
        Ok(Err(e)) => {
            stream.failed = Some(e);
            1
        }
        Err(p) => {
            stream.panic = Some(p);
            1
        }
    }
}

unsafe extern "C" fn read<R: Read>(data: *mut c_void, size: usize, user: *mut c_void) -> i64 {
    let stream = &mut *(user as *mut Stream<R>);
    let bytes = slice::from_raw_parts_mut(data as *mut u8, size);
    match catch_unwind(AssertUnwindSafe(|| stream.inner.read(bytes))) {
        Ok(Ok(n)) => n as i64,
        Ok(Err(e)) => {
            stream.failed = Some(e);
            -1
        }
        Err(p) => {
            stream.panic = Some(p);
            -1
        }
    }
}

/// Take one token list into each of several sessions of one model, in one pass over the weights.
pub fn decode_batch(sessions: &mut [(&mut Session, &[i32])], cancel: Option<&Cancel>) -> Vec<Result<Vec<f32>>> {
    let mut items: Vec<sys::perigee_batch_item> = sessions
        .iter_mut()
        .map(|(session, tokens)| sys::perigee_batch_item {
            struct_size: mem::size_of::<sys::perigee_batch_item>(),
            session: session.raw.as_ptr(),
            tokens: tokens.as_ptr(),
            n: tokens.len(),
            which: sys::PERIGEE_LOGITS_LAST,
            logits: ptr::null(),
            rows: 0,
            status: sys::PERIGEE_OK,
            error: ptr::null_mut(),
        })
        .collect();
    let whole = call(|e| unsafe { sys::perigee_decode_batch(items.as_mut_ptr(), items.len(), Cancel::raw(cancel), e) });
    let untouched = |i: &sys::perigee_batch_item| i.status == sys::PERIGEE_OK && i.logits.is_null();
    items
        .iter()
        .zip(sessions.iter())
        .map(|(item, (session, _))| {
            if item.status != sys::PERIGEE_OK {
                return Err(unsafe { Error::take(item.status, item.error) });
            }
            if untouched(item) {
                return Err(match &whole {
                    Err(e) => e.clone(),
                    Ok(()) => Error::new(Status::INTERNAL, "no logits"),
                });
            }
            let logits = unsafe { Logits::new(item.logits, item.rows, session.vocabulary) };
            Ok(logits.values().to_vec())
        })
        .collect()
}

type Trace = Box<dyn FnMut(usize, usize, usize, &[f32]) -> ControlFlow<()> + Send>;

unsafe extern "C" fn trace(
    layer: i64,
    position: i64,
    rows: usize,
    hidden: usize,
    values: *const f32,
    user: *mut c_void,
) -> c_int {
    let f = &mut *(user as *mut Trace);
    let values = slice::from_raw_parts(values, rows * hidden);
    match catch_unwind(AssertUnwindSafe(|| {
        f(layer as usize, position as usize, hidden, values)
    })) {
        Ok(ControlFlow::Continue(())) => 0,
        _ => 1, // a panic must not unwind through C frames; the step fails
    }
}

unsafe extern "C" fn release_trace(user: *mut c_void) {
    drop(Box::from_raw(user as *mut Trace));
}
