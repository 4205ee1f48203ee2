//! Text to tokens and back: tokenizer, chat formats, and the parser of what a model says.
use crate::context::Context;
use crate::error::{bytes_of, call, text, Error, Result};
use crate::model::{path_bytes, Model};
use perigee_sys as sys;
use std::marker::PhantomData;
use std::mem;
use std::os::raw::c_char;
use std::path::Path;
use std::ptr::{self, NonNull};
use std::slice;

/// Pointer and length of an optional text, as the C calls take them.
fn raw_text(text: Option<&str>) -> (*const c_char, usize) {
    text.map_or((ptr::null(), 0), |t| (t.as_ptr() as *const c_char, t.len()))
}

/// What the library gives as text, which it promises to be UTF-8.
pub(crate) unsafe fn str_of<'a>(p: *const c_char, length: usize) -> &'a str {
    std::str::from_utf8(bytes_of(p, length)).unwrap_or("")
}

/// What a host needs to know of a tokenizer.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct TokenizerInfo {
    pub family: String,
    pub format: String,
    pub base: i32,
    pub vocabulary: i32,
    pub end_ids: Vec<i32>,
}

/// Ranks and special tokens of a checkpoint: immutable, shared by any number of threads.
#[derive(Debug)]
pub struct Tokenizer<'m> {
    pub(crate) raw: NonNull<sys::perigee_tokenizer>,
    own: bool,
    model: PhantomData<&'m Model>,
}
// The header says: every call may come from any thread at any time.
unsafe impl Send for Tokenizer<'_> {}
unsafe impl Sync for Tokenizer<'_> {}

impl Model {
    /// The tokenizer of the model, if its checkpoint has one.
    pub fn tokenizer(&self) -> Option<Tokenizer<'_>> {
        let p = unsafe { sys::perigee_model_tokenizer(self.raw.as_ptr()) };
        NonNull::new(p as *mut _).map(|raw| Tokenizer {
            raw,
            own: false,
            model: PhantomData,
        })
    }
}

impl Tokenizer<'static> {
    /// Open the tokenizer of a checkpoint folder without its weights.
    pub fn open(context: &Context, path: impl AsRef<Path>) -> Result<Tokenizer<'static>> {
        let b = path_bytes(path.as_ref());
        let mut p = ptr::null_mut();
        call(|e| unsafe {
            sys::perigee_tokenizer_open(context.0.as_ptr(), b.as_ptr() as *const c_char, b.len(), &mut p, e)
        })?;
        Ok(Tokenizer {
            raw: NonNull::new(p).expect("a handle"),
            own: true,
            model: PhantomData,
        })
    }
}

type EncodeFn = unsafe extern "C" fn(
    *const sys::perigee_tokenizer,
    *const c_char,
    usize,
    u32,
    *mut i32,
    usize,
    *mut usize,
    *mut *mut sys::perigee_error,
) -> sys::perigee_status;

impl Tokenizer<'_> {
    /// What it is.
    pub fn info(&self) -> Result<TokenizerInfo> {
        let mut i: sys::perigee_tokenizer_info = unsafe { mem::zeroed() };
        i.struct_size = mem::size_of_val(&i);
        call(|e| unsafe { sys::perigee_tokenizer_get_info(self.raw.as_ptr(), &mut i, e) })?;
        let ends = match i.end_count {
            0 => &[][..],
            n => unsafe { slice::from_raw_parts(i.end_ids, n) },
        };
        Ok(TokenizerInfo {
            family: text(i.family).unwrap_or_default(),
            format: text(i.format).unwrap_or_default(),
            base: i.base,
            vocabulary: i.vocabulary,
            end_ids: ends.to_vec(),
        })
    }

    fn encode_with(&self, encode: EncodeFn, text: &str) -> Result<Vec<i32>> {
        // never more ids than bytes, so that one call does
        let mut ids = vec![0i32; text.len()];
        let mut count = 0;
        let (p, n) = raw_text(Some(text));
        call(|e| unsafe { encode(self.raw.as_ptr(), p, n, 0, ids.as_mut_ptr(), ids.len(), &mut count, e) })?;
        ids.truncate(count);
        Ok(ids)
    }

    /// Encode text that is only text: names of special tokens in it are spelt out.
    pub fn encode(&self, text: &str) -> Result<Vec<i32>> {
        self.encode_with(sys::perigee_encode_text, text)
    }

    /// As `encode`, but names of special tokens become their ids. Not for text of users: it could forge a turn.
    pub fn encode_markup(&self, text: &str) -> Result<Vec<i32>> {
        self.encode_with(sys::perigee_encode_markup, text)
    }

    /// Bytes of ids, which need not be valid UTF-8. Special tokens give their names, or nothing with `skip_special`.
    pub fn decode(&self, ids: &[i32], skip_special: bool) -> Result<Vec<u8>> {
        let flags = if skip_special {
            sys::PERIGEE_DECODE_SKIP_SPECIAL
        } else {
            0
        };
        let mut bytes: Vec<u8> = Vec::new();
        let mut length = 0;
        let run = |bytes: &mut Vec<u8>, length: &mut usize| {
            let at = bytes.as_mut_ptr() as *mut c_char;
            call(|e| unsafe {
                sys::perigee_decode(
                    self.raw.as_ptr(),
                    ids.as_ptr(),
                    ids.len(),
                    flags,
                    at,
                    bytes.len(),
                    length,
                    e,
                )
            })
        };
        run(&mut bytes, &mut length)?;
        bytes.resize(length, 0);
        if length > 0 {
            run(&mut bytes, &mut length)?;
        }
        Ok(bytes)
    }

    /// Bytes of one id, and whether it is a special token.
    pub fn token_bytes(&self, id: i32) -> Result<(&[u8], bool)> {
        let (mut p, mut n, mut special) = (ptr::null(), 0, 0);
        call(|e| unsafe { sys::perigee_token_bytes(self.raw.as_ptr(), id, &mut p, &mut n, &mut special, e) })?;
        Ok((unsafe { bytes_of(p, n) }, special != 0))
    }

    /// Id of a special token by its name.
    pub fn token_id(&self, name: &str) -> Result<i32> {
        let mut id = 0;
        let (p, n) = raw_text(Some(name));
        call(|e| unsafe { sys::perigee_token_id(self.raw.as_ptr(), p, n, &mut id, e) })?;
        Ok(id)
    }
}

impl Drop for Tokenizer<'_> {
    fn drop(&mut self) {
        if self.own {
            unsafe { sys::perigee_tokenizer_free(self.raw.as_ptr()) }
        }
    }
}

/// Decodes id after id into whole characters.
#[derive(Debug)]
pub struct Decoder(NonNull<sys::perigee_decoder>);
unsafe impl Send for Decoder {}

impl Decoder {
    /// Make one; it holds its tokenizer.
    pub fn new(tokenizer: &Tokenizer, skip_special: bool) -> Result<Decoder> {
        let flags = if skip_special {
            sys::PERIGEE_DECODE_SKIP_SPECIAL
        } else {
            0
        };
        let mut p = ptr::null_mut();
        call(|e| unsafe { sys::perigee_decoder_new(tokenizer.raw.as_ptr(), flags, &mut p, e) })?;
        Ok(Decoder(NonNull::new(p).expect("a handle")))
    }
    /// Take the next id: the characters that it completes, often none.
    pub fn push(&mut self, id: i32) -> Result<&str> {
        let (mut p, mut n) = (ptr::null(), 0);
        call(|e| unsafe { sys::perigee_decoder_push(self.0.as_ptr(), id, &mut p, &mut n, e) })?;
        Ok(unsafe { str_of(p, n) })
    }
    /// No more ids: what was held back becomes U+FFFD.
    pub fn flush(&mut self) -> Result<&str> {
        let (mut p, mut n) = (ptr::null(), 0);
        call(|e| unsafe { sys::perigee_decoder_flush(self.0.as_ptr(), &mut p, &mut n, e) })?;
        Ok(unsafe { str_of(p, n) })
    }
}

impl Drop for Decoder {
    fn drop(&mut self) {
        unsafe { sys::perigee_decoder_free(self.0.as_ptr()) }
    }
}

/// How to render a chat; what is `None` or false is the format's default.
#[derive(Clone, Debug, Default)]
pub struct ChatOptions<'a> {
    /// Whether the model thinks before it answers.
    pub thinking: Option<bool>,
    /// End behind the last message, not in an open answer of the assistant.
    pub omit_generation_prompt: bool,
    /// Name of a chat format, else the tokenizer's own.
    pub format: Option<&'a str>,
    /// "low", "high" or "max" (kimi_k3 with thinking).
    pub effort: Option<&'a str>,
    /// "auto"; kimi_k3: also "required" and "none".
    pub tool_choice: Option<&'a str>,
    /// OpenAI's response_format as JSON.
    pub response_format: Option<&'a str>,
}

/// A stretch of a prompt: one control token, or one text that was encoded on its own.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Segment<'a> {
    pub text: &'a str,
    pub control: bool,
    pub ids: &'a [i32],
}

/// A rendered conversation.
#[derive(Debug)]
pub struct Chat(NonNull<sys::perigee_chat>);
unsafe impl Send for Chat {}
unsafe impl Sync for Chat {}

impl Chat {
    /// Render messages, and tools if there are any: JSON arrays in OpenAI's form.
    pub fn render(tokenizer: &Tokenizer, messages: &str, tools: Option<&str>, options: &ChatOptions) -> Result<Chat> {
        let mut o: sys::perigee_chat_options = unsafe { mem::zeroed() };
        o.struct_size = mem::size_of_val(&o);
        o.thinking = match options.thinking {
            None => sys::PERIGEE_THINKING_DEFAULT,
            Some(true) => sys::PERIGEE_THINKING_ON,
            Some(false) => sys::PERIGEE_THINKING_OFF,
        };
        o.omit_generation_prompt = options.omit_generation_prompt as i32;
        (o.format, o.format_length) = raw_text(options.format);
        (o.effort, o.effort_length) = raw_text(options.effort);
        (o.tool_choice, o.tool_choice_length) = raw_text(options.tool_choice);
        (o.response_format, o.response_format_length) = raw_text(options.response_format);
        let (m, m_length) = raw_text(Some(messages));
        let (t, t_length) = raw_text(tools);
        let mut p = ptr::null_mut();
        call(|e| unsafe { sys::perigee_chat_render(tokenizer.raw.as_ptr(), m, m_length, t, t_length, &o, &mut p, e) })?;
        Ok(Chat(NonNull::new(p).expect("a handle")))
    }
    /// Its ids.
    pub fn ids(&self) -> &[i32] {
        let mut n = 0;
        let p = unsafe { sys::perigee_chat_ids(self.0.as_ptr(), &mut n) };
        match n {
            0 => &[],
            _ => unsafe { slice::from_raw_parts(p, n) },
        }
    }
    /// The prompt as text for people; never encode it.
    pub fn text(&self) -> &str {
        let mut n = 0;
        let p = unsafe { sys::perigee_chat_text(self.0.as_ptr(), &mut n) };
        unsafe { str_of(p, n) }
    }
    /// The prompt in stretches.
    pub fn segments(&self) -> Result<Vec<Segment<'_>>> {
        let count = unsafe { sys::perigee_chat_segment_count(self.0.as_ptr()) };
        let mut all = Vec::with_capacity(count);
        for i in 0..count {
            let mut s: sys::perigee_chat_segment = unsafe { mem::zeroed() };
            s.struct_size = mem::size_of_val(&s);
            call(|e| unsafe { sys::perigee_chat_get_segment(self.0.as_ptr(), i, &mut s, e) })?;
            all.push(Segment {
                text: unsafe { str_of(s.text, s.length) },
                control: s.control != 0,
                ids: &self.ids()[s.first..s.first + s.count],
            });
        }
        Ok(all)
    }
}

impl Drop for Chat {
    fn drop(&mut self) {
        unsafe { sys::perigee_chat_free(self.0.as_ptr()) }
    }
}

/// A step of an answer, in the order in which it came.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Delta {
    /// More reasoning.
    Thinking(String),
    /// More of the answer.
    Content(String),
    /// A tool call begins.
    Call {
        /// Index of the call, from 0.
        call: usize,
        /// Of the function.
        name: String,
        /// Of the call, as a tool message refers to it.
        id: String,
    },
    /// More of a call's arguments, JSON text.
    Arguments {
        /// Index of the call.
        call: usize,
        /// The next piece.
        text: String,
    },
    /// A tool call is whole.
    CallEnd(usize),
    /// The message has ended.
    End,
}

/// Reads the answer of a model, id by id, into reasoning, answer and tool calls.
#[derive(Debug)]
pub struct Parser(NonNull<sys::perigee_parser>);
unsafe impl Send for Parser {}

impl Parser {
    /// For the answer to `chat`, or with `None` to the tokenizer's default prompt.
    pub fn new(tokenizer: &Tokenizer, chat: Option<&Chat>) -> Result<Parser> {
        let mut p = ptr::null_mut();
        let chat = chat.map_or(ptr::null(), |c| c.0.as_ptr() as *const _);
        call(|e| unsafe { sys::perigee_parser_new(tokenizer.raw.as_ptr(), chat, &mut p, e) })?;
        Ok(Parser(NonNull::new(p).expect("a handle")))
    }
    fn deltas(&self, count: usize) -> Result<Vec<Delta>> {
        let mut all = Vec::with_capacity(count);
        for i in 0..count {
            let mut d: sys::perigee_delta = unsafe { mem::zeroed() };
            d.struct_size = mem::size_of_val(&d);
            call(|e| unsafe { sys::perigee_parser_get_delta(self.0.as_ptr(), i, &mut d, e) })?;
            let piece = unsafe { str_of(d.text, d.length) }.to_owned();
            match d.kind {
                sys::PERIGEE_DELTA_THINKING => all.push(Delta::Thinking(piece)),
                sys::PERIGEE_DELTA_CONTENT => all.push(Delta::Content(piece)),
                sys::PERIGEE_DELTA_CALL => all.push(Delta::Call {
                    call: d.call,
                    name: text(d.name).unwrap_or_default(),
                    id: text(d.id).unwrap_or_default(),
                }),
                sys::PERIGEE_DELTA_ARGUMENTS => all.push(Delta::Arguments {
                    call: d.call,
                    text: piece,
                }),
                sys::PERIGEE_DELTA_CALL_END => all.push(Delta::CallEnd(d.call)),
                sys::PERIGEE_DELTA_END => all.push(Delta::End),
                other => return Err(Error::unsupported(&format!("a delta of kind {}", other.0))),
            }
        }
        Ok(all)
    }
    /// Take the next id.
    pub fn push(&mut self, id: i32) -> Result<Vec<Delta>> {
        let mut count = 0;
        call(|e| unsafe { sys::perigee_parser_push(self.0.as_ptr(), id, &mut count, e) })?;
        self.deltas(count)
    }
    /// No more ids: close what is open, and end the message.
    pub fn finish(&mut self) -> Result<Vec<Delta>> {
        let mut count = 0;
        call(|e| unsafe { sys::perigee_parser_finish(self.0.as_ptr(), &mut count, e) })?;
        self.deltas(count)
    }
    /// Whether an end token was seen.
    pub fn ended(&self) -> bool {
        unsafe { sys::perigee_parser_ended(self.0.as_ptr()) != 0 }
    }
    /// The message so far in OpenAI's form, as JSON.
    pub fn message(&mut self) -> Result<&str> {
        let (mut p, mut n) = (ptr::null(), 0);
        call(|e| unsafe { sys::perigee_parser_message(self.0.as_ptr(), &mut p, &mut n, e) })?;
        Ok(unsafe { str_of(p, n) })
    }
}

impl Drop for Parser {
    fn drop(&mut self) {
        unsafe { sys::perigee_parser_free(self.0.as_ptr()) }
    }
}
