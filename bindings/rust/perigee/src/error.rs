//! Errors of the library as values.
use perigee_sys as sys;
use std::ffi::CStr;
use std::os::raw::c_char;
use std::{error, fmt, ptr};

/// What kind of failure it was: the numbers of the C library, also those of a newer one.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Status(pub(crate) sys::perigee_status);

macro_rules! statuses {
    ($($name:ident = $c:ident,)*) => {
        impl Status {
            $(#[allow(missing_docs)] pub const $name: Status = Status(sys::$c);)*
        }
    };
}
statuses! {
    ARGUMENT = PERIGEE_E_ARGUMENT, RANGE = PERIGEE_E_RANGE, STATE = PERIGEE_E_STATE, TOKEN = PERIGEE_E_TOKEN,
    CONTEXT_FULL = PERIGEE_E_CONTEXT_FULL, BUFFER = PERIGEE_E_BUFFER, SCOPE = PERIGEE_E_SCOPE,
    MEMORY = PERIGEE_E_MEMORY, IO = PERIGEE_E_IO, NOT_FOUND = PERIGEE_E_NOT_FOUND, SYSTEM = PERIGEE_E_SYSTEM,
    DISK_FULL = PERIGEE_E_DISK_FULL, FORMAT = PERIGEE_E_FORMAT, CONFIG = PERIGEE_E_CONFIG,
    TENSOR = PERIGEE_E_TENSOR, MISMATCH = PERIGEE_E_MISMATCH, VERSION = PERIGEE_E_VERSION,
    CHECKSUM = PERIGEE_E_CHECKSUM, TEXT = PERIGEE_E_TEXT, SCHEMA = PERIGEE_E_SCHEMA,
    TRUNCATED = PERIGEE_E_TRUNCATED, CANCELLED = PERIGEE_E_CANCELLED, NOT_FINITE = PERIGEE_E_NOT_FINITE,
    CALLBACK = PERIGEE_E_CALLBACK, KERNEL = PERIGEE_E_KERNEL, UNSUPPORTED = PERIGEE_E_UNSUPPORTED,
    INTERNAL = PERIGEE_E_INTERNAL,
}

impl Status {
    /// The number of the C enumeration.
    pub fn number(self) -> u32 {
        self.0 .0
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&text(unsafe { sys::perigee_status_name(self.0) }).unwrap_or_default())
    }
}

/// A failed call: its status, a sentence, and what it was about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    status: Status,
    message: String,
    tensor: Option<String>,
    file: Option<String>,
    offset: Option<i64>,
    layer: Option<i64>,
}

/// Result of the library's calls.
pub type Result<T> = std::result::Result<T, Error>;

pub(crate) fn text(p: *const c_char) -> Option<String> {
    if p.is_null() {
        None
    } else {
        Some(unsafe { CStr::from_ptr(p) }.to_string_lossy().into_owned())
    }
}

/// Bytes that the library lends.
pub(crate) unsafe fn bytes_of<'a>(p: *const c_char, length: usize) -> &'a [u8] {
    match length {
        0 => &[],
        _ => std::slice::from_raw_parts(p as *const u8, length),
    }
}

impl Error {
    pub(crate) fn new(status: Status, message: &str) -> Error {
        Error {
            status,
            message: message.into(),
            tensor: None,
            file: None,
            offset: None,
            layer: None,
        }
    }

    pub(crate) fn argument(message: &str) -> Error {
        Error::new(Status::ARGUMENT, message)
    }
    pub(crate) fn unsupported(message: &str) -> Error {
        Error::new(Status::UNSUPPORTED, message)
    }

    /// Copies the C object.
    pub(crate) unsafe fn copy(status: sys::perigee_status, e: *const sys::perigee_error) -> Error {
        let known = |v: i64| if v < 0 { None } else { Some(v) };
        Error {
            status: Status(status),
            message: match e.is_null() {
                true => text(sys::perigee_status_text(status)).unwrap_or_default(),
                false => text(sys::perigee_error_message(e)).unwrap_or_default(),
            },
            tensor: text(sys::perigee_error_tensor(e)),
            file: text(sys::perigee_error_file(e)),
            offset: known(sys::perigee_error_offset(e)),
            layer: known(sys::perigee_error_layer(e)),
        }
    }

    /// Copies the C object and frees it.
    pub(crate) unsafe fn take(status: sys::perigee_status, e: *mut sys::perigee_error) -> Error {
        let made = Error::copy(status, e);
        sys::perigee_error_free(e);
        made
    }

    /// Kind of failure.
    pub fn status(&self) -> Status {
        self.status
    }
    /// Name of the tensor concerned.
    pub fn tensor(&self) -> Option<&str> {
        self.tensor.as_deref()
    }
    /// Path of the file concerned.
    pub fn file(&self) -> Option<&str> {
        self.file.as_deref()
    }
    /// Byte offset in the file or text concerned.
    pub fn offset(&self) -> Option<i64> {
        self.offset
    }
    /// Zero-based layer concerned.
    pub fn layer(&self) -> Option<i64> {
        self.layer
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl error::Error for Error {}

/// Run a C call that takes an error last.
pub(crate) fn call(f: impl FnOnce(*mut *mut sys::perigee_error) -> sys::perigee_status) -> Result<()> {
    let mut e = ptr::null_mut();
    let status = f(&mut e);
    if status == sys::PERIGEE_OK {
        Ok(())
    } else {
        Err(unsafe { Error::take(status, e) })
    }
}
