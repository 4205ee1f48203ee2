// Written by generate.lua from the public headers; do not edit.
#[allow(unused_imports)]
use std::marker::{PhantomData, PhantomPinned};
#[allow(unused_imports)]
use std::os::raw::{c_char, c_int, c_long, c_uint, c_ulong, c_void};

#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct perigee_status(pub c_uint);
pub const PERIGEE_OK: perigee_status = perigee_status(0);
pub const PERIGEE_E_ARGUMENT: perigee_status = perigee_status(10);
pub const PERIGEE_E_RANGE: perigee_status = perigee_status(11);
pub const PERIGEE_E_STATE: perigee_status = perigee_status(12);
pub const PERIGEE_E_TOKEN: perigee_status = perigee_status(13);
pub const PERIGEE_E_CONTEXT_FULL: perigee_status = perigee_status(14);
pub const PERIGEE_E_BUFFER: perigee_status = perigee_status(15);
pub const PERIGEE_E_SCOPE: perigee_status = perigee_status(16);
pub const PERIGEE_E_MEMORY: perigee_status = perigee_status(30);
pub const PERIGEE_E_IO: perigee_status = perigee_status(31);
pub const PERIGEE_E_NOT_FOUND: perigee_status = perigee_status(32);
pub const PERIGEE_E_SYSTEM: perigee_status = perigee_status(33);
pub const PERIGEE_E_DISK_FULL: perigee_status = perigee_status(34);
pub const PERIGEE_E_FORMAT: perigee_status = perigee_status(50);
pub const PERIGEE_E_CONFIG: perigee_status = perigee_status(51);
pub const PERIGEE_E_TENSOR: perigee_status = perigee_status(52);
pub const PERIGEE_E_MISMATCH: perigee_status = perigee_status(53);
pub const PERIGEE_E_VERSION: perigee_status = perigee_status(54);
pub const PERIGEE_E_CHECKSUM: perigee_status = perigee_status(55);
pub const PERIGEE_E_TEXT: perigee_status = perigee_status(56);
pub const PERIGEE_E_SCHEMA: perigee_status = perigee_status(57);
pub const PERIGEE_E_TRUNCATED: perigee_status = perigee_status(58);
pub const PERIGEE_E_CANCELLED: perigee_status = perigee_status(70);
pub const PERIGEE_E_NOT_FINITE: perigee_status = perigee_status(71);
pub const PERIGEE_E_CALLBACK: perigee_status = perigee_status(72);
pub const PERIGEE_E_KERNEL: perigee_status = perigee_status(73);
pub const PERIGEE_E_UNSUPPORTED: perigee_status = perigee_status(90);
pub const PERIGEE_E_INTERNAL: perigee_status = perigee_status(91);
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct perigee_option(pub c_uint);
pub const PERIGEE_OPTION_THREADS: perigee_option = perigee_option(1);
pub const PERIGEE_OPTION_CPUS: perigee_option = perigee_option(2);
pub const PERIGEE_OPTION_KERNELS: perigee_option = perigee_option(3);
pub const PERIGEE_OPTION_PRECISION: perigee_option = perigee_option(4);
pub const PERIGEE_OPTION_LOG_LEVEL: perigee_option = perigee_option(5);
pub const PERIGEE_OPTION_PLUGINS: perigee_option = perigee_option(6);
pub const PERIGEE_OPTION_TRACE_KERNELS: perigee_option = perigee_option(7);
pub const PERIGEE_OPTION_CHECK_KERNELS: perigee_option = perigee_option(8);
pub const PERIGEE_OPTION_WEIGHTS: perigee_option = perigee_option(20);
pub const PERIGEE_OPTION_INNER_EPS: perigee_option = perigee_option(21);
pub const PERIGEE_OPTION_MEMORY_BUDGET: perigee_option = perigee_option(22);
pub const PERIGEE_OPTION_TRUNK: perigee_option = perigee_option(23);
pub const PERIGEE_OPTION_CONTEXT: perigee_option = perigee_option(40);
pub const PERIGEE_OPTION_CHUNK: perigee_option = perigee_option(41);
pub const PERIGEE_OPTION_CACHE_TYPE: perigee_option = perigee_option(42);
pub const PERIGEE_OPTION_CHECKPOINTS: perigee_option = perigee_option(43);
pub const PERIGEE_OPTION_CHECKPOINT_INTERVAL: perigee_option = perigee_option(44);
pub const PERIGEE_VERSION_MAJOR: c_int = 0;
pub const PERIGEE_VERSION_MINOR: c_int = 1;
pub const PERIGEE_VERSION_PATCH: c_int = 0;
pub const PERIGEE_ABI_VERSION: c_int = 0;
#[repr(C)]
pub struct perigee_error {
    _data: [u8; 0],
    _marker: PhantomData<(*mut u8, PhantomPinned)>,
}
#[repr(C)]
pub struct perigee_cancel {
    _data: [u8; 0],
    _marker: PhantomData<(*mut u8, PhantomPinned)>,
}
#[repr(C)]
pub struct perigee_options {
    _data: [u8; 0],
    _marker: PhantomData<(*mut u8, PhantomPinned)>,
}
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct perigee_option_type(pub c_uint);
pub const PERIGEE_OPTION_TYPE_INT: perigee_option_type = perigee_option_type(0);
pub const PERIGEE_OPTION_TYPE_FLOAT: perigee_option_type = perigee_option_type(1);
pub const PERIGEE_OPTION_TYPE_STRING: perigee_option_type = perigee_option_type(2);
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct perigee_option_scope(pub c_uint);
pub const PERIGEE_SCOPE_CONTEXT: perigee_option_scope = perigee_option_scope(0);
pub const PERIGEE_SCOPE_MODEL: perigee_option_scope = perigee_option_scope(1);
pub const PERIGEE_SCOPE_SESSION: perigee_option_scope = perigee_option_scope(2);
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct perigee_option_description {
    pub struct_size: usize,
    pub key: perigee_option,
    pub r#type: perigee_option_type,
    pub scope: perigee_option_scope,
    pub name: *const c_char,
    pub help: *const c_char,
    pub default_text: *const c_char,
    pub minimum: f64,
    pub maximum: f64,
}
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct perigee_allocator {
    pub struct_size: usize,
    pub allocate: Option<unsafe extern "C" fn(usize, usize, *mut c_void) -> *mut c_void>,
    pub deallocate: Option<unsafe extern "C" fn(*mut c_void, usize, *mut c_void)>,
    pub user: *mut c_void,
    pub release: Option<unsafe extern "C" fn(*mut c_void)>,
}
pub const PERIGEE_KERNEL_VERSION: c_int = 2;
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct perigee_dtype(pub c_uint);
pub const PERIGEE_DTYPE_NONE: perigee_dtype = perigee_dtype(0);
pub const PERIGEE_DTYPE_F32: perigee_dtype = perigee_dtype(1);
pub const PERIGEE_DTYPE_F16: perigee_dtype = perigee_dtype(2);
pub const PERIGEE_DTYPE_BF16: perigee_dtype = perigee_dtype(3);
pub const PERIGEE_DTYPE_MXFP4: perigee_dtype = perigee_dtype(4);
pub const PERIGEE_DTYPE_INT4: perigee_dtype = perigee_dtype(5);
pub const PERIGEE_DTYPE_FP8: perigee_dtype = perigee_dtype(6);
pub const PERIGEE_DTYPE_Q8_0: perigee_dtype = perigee_dtype(7);
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct perigee_matrix {
    pub dtype: u32,
    pub layout: u32,
    pub rows: usize,
    pub cols: usize,
    pub codes: *const c_void,
    pub scales: *const c_void,
    pub row_bytes: usize,
    pub scale_row_bytes: usize,
    pub scale_dtype: u32,
    pub reserved: u32,
}
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct perigee_op(pub c_uint);
pub const PERIGEE_OP_MATMUL: perigee_op = perigee_op(1);
pub const PERIGEE_OP_MATMUL_TRANSPOSED: perigee_op = perigee_op(2);
pub const PERIGEE_OP_GATED_ACTIVATION: perigee_op = perigee_op(3);
pub const PERIGEE_OP_RMS_NORM: perigee_op = perigee_op(4);
pub const PERIGEE_OP_SOFTMAX: perigee_op = perigee_op(5);
pub const PERIGEE_OP_SHORT_CONV: perigee_op = perigee_op(6);
pub const PERIGEE_OP_KDA: perigee_op = perigee_op(7);
pub const PERIGEE_OP_ATTENTION: perigee_op = perigee_op(8);
pub const PERIGEE_OP_RESIDUAL_MIX: perigee_op = perigee_op(9);
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct perigee_precision(pub c_uint);
pub const PERIGEE_PRECISION_EXACT: perigee_precision = perigee_precision(0);
pub const PERIGEE_PRECISION_BALANCED: perigee_precision = perigee_precision(1);
pub const PERIGEE_PRECISION_FAST: perigee_precision = perigee_precision(2);
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct perigee_cpu_feature(pub c_uint);
pub const PERIGEE_CPU_AVX2: perigee_cpu_feature = perigee_cpu_feature(1);
pub const PERIGEE_CPU_AVX512: perigee_cpu_feature = perigee_cpu_feature(2);
pub const PERIGEE_CPU_AVX512_VNNI: perigee_cpu_feature = perigee_cpu_feature(4);
pub const PERIGEE_CPU_AVX512_BF16: perigee_cpu_feature = perigee_cpu_feature(8);
pub const PERIGEE_CPU_NEON: perigee_cpu_feature = perigee_cpu_feature(16);
pub const PERIGEE_CPU_DOTPROD: perigee_cpu_feature = perigee_cpu_feature(32);
pub const PERIGEE_CPU_AMX_BF16: perigee_cpu_feature = perigee_cpu_feature(64);
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct perigee_kernel_flag(pub c_uint);
pub const PERIGEE_KERNEL_NONDETERMINISTIC: perigee_kernel_flag = perigee_kernel_flag(1);
pub const PERIGEE_KERNEL_HOST: perigee_kernel_flag = perigee_kernel_flag(2);
pub type perigee_kernel_fn = Option<unsafe extern "C" fn()>;
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct perigee_matmul_functions {
    pub packed_bytes: Option<unsafe extern "C" fn(usize) -> usize>,
    pub pack: Option<unsafe extern "C" fn(*const f32, usize, usize, usize, *mut c_void)>,
    pub scratch_bytes: Option<unsafe extern "C" fn(usize, usize) -> usize>,
    pub multiply: Option<unsafe extern "C" fn(*const perigee_matrix, usize, usize, *const c_void, *const u32, usize, *mut f32, usize, *mut c_void)>,
    pub host: Option<unsafe extern "C" fn(*mut c_void, *const perigee_matrix, usize, usize, *const f32, usize, usize, *mut f32, usize) -> i32>,
}
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct perigee_transposed_functions {
    pub multiply: Option<unsafe extern "C" fn(*const perigee_matrix, usize, usize, *const f32, usize, usize, *mut f32, usize)>,
}
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct perigee_gated_functions {
    pub gated: Option<unsafe extern "C" fn(*const f32, *const f32, usize, c_int, f32, f32, *mut f32)>,
}
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct perigee_norm_functions {
    pub rms_norm: Option<unsafe extern "C" fn(*const f32, *const f32, *const f32, usize, f32, *mut f32)>,
}
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct perigee_softmax_functions {
    pub softmax: Option<unsafe extern "C" fn(*const f32, usize, *mut f32)>,
    pub sigmoid: Option<unsafe extern "C" fn(*const f32, usize, *mut f32)>,
    pub sigmoid_gate: Option<unsafe extern "C" fn(*const f32, usize, *mut f32)>,
}
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct perigee_conv_job {
    pub taps: *const f32,
    pub n_taps: usize,
    pub channels: usize,
    pub history: *const f32,
    pub next: *mut f32,
    pub u: *const f32,
    pub ldu: usize,
    pub m: usize,
    pub y: *mut f32,
    pub ldy: usize,
    pub first: usize,
    pub count: usize,
}
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct perigee_conv_functions {
    pub conv: Option<unsafe extern "C" fn(*const perigee_conv_job)>,
}
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct perigee_kda_job {
    pub dim: usize,
    pub m: usize,
    pub state: *const f32,
    pub next: *mut f32,
    pub pending: *const f32,
    pub next_pending: *mut f32,
    pub q: *const f32,
    pub k: *const f32,
    pub v: *const f32,
    pub f: *const f32,
    pub ld: usize,
    pub dt_bias: *const f32,
    pub rate: f32,
    pub has_lower_bound: u32,
    pub lower_bound: f32,
    pub beta: *const f32,
    pub ldbeta: usize,
    pub out: *mut f32,
    pub ldo: usize,
    pub scratch: *mut f32,
}
pub const PERIGEE_KDA_PANEL: c_int = 64;
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct perigee_kda_functions {
    pub run: Option<unsafe extern "C" fn(*const perigee_kda_job)>,
}
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct perigee_attention_tile {
    pub rank: usize,
    pub rope: usize,
    pub rows: usize,
    pub q: *const f32,
    pub scale: f32,
    pub bf16: u32,
    pub latent: *const c_void,
    pub keys: usize,
    pub visible: *const u32,
    pub max: *mut f32,
    pub sum: *mut f32,
    pub z: *mut f32,
    pub scratch: *mut f32,
    pub next: *const c_void,
}
pub const PERIGEE_ATTENTION_GROUP: c_int = 6;
pub const PERIGEE_ATTENTION_KEYS: c_int = 64;
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct perigee_attention_walk {
    pub rank: usize,
    pub rope: usize,
    pub rows: usize,
    pub scale: f32,
    pub bf16: u32,
    pub work: *mut c_void,
    pub q: *const f32,
    pub ldq: usize,
    pub latents: *const *const c_void,
    pub keys: usize,
    pub visible: *const u32,
    pub next: *const *const c_void,
    pub n_next: usize,
    pub z: *mut f32,
    pub ldz: usize,
}
pub const PERIGEE_ATTENTION_STEP: c_int = 256;
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct perigee_attention_functions {
    pub tile: Option<unsafe extern "C" fn(*const perigee_attention_tile)>,
    pub work_bytes: Option<unsafe extern "C" fn(usize, usize, usize) -> usize>,
    pub begin: Option<unsafe extern "C" fn(*const perigee_attention_walk)>,
    pub step: Option<unsafe extern "C" fn(*const perigee_attention_walk)>,
    pub end: Option<unsafe extern "C" fn(*const perigee_attention_walk)>,
}
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct perigee_mix_functions {
    pub mix: Option<unsafe extern "C" fn(*const *const f32, usize, usize, *const f32, usize, f32, *mut f32, *mut f32)>,
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct perigee_kernel_row {
    pub struct_size: usize,
    pub op: u32,
    pub dtype: u32,
    pub precision: u32,
    pub flags: u32,
    pub features: u64,
    pub priority: i32,
    pub reserved: u32,
    pub error_bound: f64,
    pub name: *const c_char,
    pub isa: *const c_char,
    pub numerics: *const c_char,
    pub signature: *const c_char,
    pub row_tile: usize,
    pub token_tile: usize,
    pub user: *mut c_void,
    pub run: perigee_kernel_row_run,
    pub function: perigee_kernel_fn,
}
#[repr(C)]
#[derive(Clone, Copy)]
pub union perigee_kernel_row_run {
    pub functions: [perigee_kernel_fn; 8],
    pub matmul: perigee_matmul_functions,
    pub transposed: perigee_transposed_functions,
    pub gated: perigee_gated_functions,
    pub norm: perigee_norm_functions,
    pub softmax: perigee_softmax_functions,
    pub conv: perigee_conv_functions,
    pub kda: perigee_kda_functions,
    pub attention: perigee_attention_functions,
    pub mix: perigee_mix_functions,
}
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct perigee_kernel_registry {
    pub struct_size: usize,
    pub version: u32,
    pub reserved: u32,
    pub features: u64,
    pub self_: *mut c_void,
    pub add: Option<unsafe extern "C" fn(*mut c_void, *const perigee_kernel_row) -> i32>,
}
pub type perigee_kernel_plugin_fn = Option<unsafe extern "C" fn(*const perigee_kernel_registry) -> i32>;
#[repr(C)]
pub struct perigee_context {
    _data: [u8; 0],
    _marker: PhantomData<(*mut u8, PhantomPinned)>,
}
#[repr(C)]
pub struct perigee_kernel_set {
    _data: [u8; 0],
    _marker: PhantomData<(*mut u8, PhantomPinned)>,
}
pub type perigee_log_fn = Option<unsafe extern "C" fn(c_int, *const c_char, *mut c_void)>;
pub type perigee_release_fn = Option<unsafe extern "C" fn(*mut c_void)>;
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct perigee_log {
    pub struct_size: usize,
    pub write: perigee_log_fn,
    pub user: *mut c_void,
    pub release: perigee_release_fn,
}
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct perigee_kernel_info {
    pub struct_size: usize,
    pub name: *const c_char,
    pub op: *const c_char,
    pub weight: *const c_char,
    pub isa: *const c_char,
    pub origin: *const c_char,
    pub numerics: *const c_char,
    pub precision: *const c_char,
    pub error_bound: f64,
    pub deterministic: i32,
    pub in_use: i32,
}
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct perigee_kernel_trace {
    pub struct_size: usize,
    pub kernel: *const c_char,
    pub function: *const c_char,
    pub op: *const c_char,
    pub rows: usize,
    pub cols: usize,
    pub tokens: usize,
    pub calls: i64,
    pub seconds: f64,
}
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct perigee_kernel_check {
    pub struct_size: usize,
    pub calls: i64,
    pub skipped: i64,
    pub different: i64,
    pub largest: f64,
    pub kernel: *const c_char,
    pub reference: *const c_char,
    pub op: *const c_char,
    pub function: *const c_char,
    pub output: *const c_char,
    pub rows: usize,
    pub cols: usize,
    pub tokens: usize,
    pub index: usize,
    pub width: usize,
    pub value: f64,
    pub expected: f64,
    pub allowed: f64,
}
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct perigee_kernel_timing {
    pub struct_size: usize,
    pub rows: usize,
    pub cols: usize,
    pub tokens: usize,
    pub seconds: f64,
    pub bytes: i64,
    pub multiply_adds: i64,
}
#[repr(C)]
pub struct perigee_model {
    _data: [u8; 0],
    _marker: PhantomData<(*mut u8, PhantomPinned)>,
}
pub type perigee_progress_fn = Option<unsafe extern "C" fn(i64, i64, *mut c_void) -> c_int>;
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct perigee_model_info {
    pub struct_size: usize,
    pub family: *const c_char,
    pub vocabulary: i64,
    pub hidden: i64,
    pub layers: i64,
    pub kda_layers: i64,
    pub context: i64,
    pub bos: i64,
    pub end_ids: *const i32,
    pub end_count: usize,
    pub weight_bytes: i64,
    pub resident_bytes: i64,
    pub token_bytes: i64,
}
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct perigee_plan {
    pub struct_size: usize,
    pub disk_bytes: i64,
    pub resident_bytes: i64,
    pub relaid_bytes: i64,
    pub table_bytes: i64,
    pub token_bytes: i64,
    pub session_fixed_bytes: i64,
    pub session_token_bytes: i64,
    pub cache_block_tokens: i64,
    pub scratch_bytes: i64,
    pub chunk: i64,
    pub context: i64,
    pub available_bytes: i64,
    pub mapped: i32,
    pub fits: i32,
}
#[repr(C)]
pub struct perigee_description {
    _data: [u8; 0],
    _marker: PhantomData<(*mut u8, PhantomPinned)>,
}
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct perigee_component {
    pub struct_size: usize,
    pub name: *const c_char,
    pub title: *const c_char,
    pub formula: *const c_char,
    pub shape: *const c_char,
    pub stored: *const c_char,
    pub per_instance: i64,
    pub instances: i64,
    pub total: i64,
    pub active: i64,
    pub disk_total: i64,
    pub disk_bytes: i64,
}
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct perigee_totals {
    pub struct_size: usize,
    pub family: *const c_char,
    pub parameters: i64,
    pub active: i64,
    pub disk_parameters: i64,
    pub disk_bytes: i64,
    pub layers: i64,
    pub kda_layers: i64,
    pub mla_layers: i64,
    pub moe_layers: i64,
}
#[repr(C)]
pub struct perigee_session {
    _data: [u8; 0],
    _marker: PhantomData<(*mut u8, PhantomPinned)>,
}
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct perigee_logits(pub c_uint);
pub const PERIGEE_LOGITS_NONE: perigee_logits = perigee_logits(0);
pub const PERIGEE_LOGITS_LAST: perigee_logits = perigee_logits(1);
pub const PERIGEE_LOGITS_ALL: perigee_logits = perigee_logits(2);
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct perigee_statistics {
    pub struct_size: usize,
    pub tokens: i64,
    pub steps: i64,
    pub seconds: f64,
    pub weight_bytes: i64,
    pub expert_reads: i64,
    pub cache_hits: i64,
    pub wait_seconds: f64,
    pub memory_bytes: i64,
}
pub type perigee_trace_fn = Option<unsafe extern "C" fn(i64, i64, usize, usize, *const f32, *mut c_void) -> c_int>;
#[repr(C)]
pub struct perigee_tokenizer {
    _data: [u8; 0],
    _marker: PhantomData<(*mut u8, PhantomPinned)>,
}
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct perigee_tokenizer_info {
    pub struct_size: usize,
    pub family: *const c_char,
    pub format: *const c_char,
    pub base: i32,
    pub vocabulary: i32,
    pub end_ids: *const i32,
    pub end_count: usize,
}
pub const PERIGEE_ENCODE_REPLACE: c_uint = 1;
pub const PERIGEE_DECODE_SKIP_SPECIAL: c_uint = 1;
#[repr(C)]
pub struct perigee_decoder {
    _data: [u8; 0],
    _marker: PhantomData<(*mut u8, PhantomPinned)>,
}
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct perigee_thinking(pub c_uint);
pub const PERIGEE_THINKING_DEFAULT: perigee_thinking = perigee_thinking(0);
pub const PERIGEE_THINKING_ON: perigee_thinking = perigee_thinking(1);
pub const PERIGEE_THINKING_OFF: perigee_thinking = perigee_thinking(2);
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct perigee_chat_options {
    pub struct_size: usize,
    pub thinking: perigee_thinking,
    pub omit_generation_prompt: i32,
    pub format: *const c_char,
    pub format_length: usize,
    pub effort: *const c_char,
    pub effort_length: usize,
    pub tool_choice: *const c_char,
    pub tool_choice_length: usize,
    pub response_format: *const c_char,
    pub response_format_length: usize,
}
#[repr(C)]
pub struct perigee_chat {
    _data: [u8; 0],
    _marker: PhantomData<(*mut u8, PhantomPinned)>,
}
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct perigee_chat_segment {
    pub struct_size: usize,
    pub text: *const c_char,
    pub length: usize,
    pub control: i32,
    pub first: usize,
    pub count: usize,
}
#[repr(C)]
pub struct perigee_parser {
    _data: [u8; 0],
    _marker: PhantomData<(*mut u8, PhantomPinned)>,
}
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct perigee_delta_kind(pub c_uint);
pub const PERIGEE_DELTA_THINKING: perigee_delta_kind = perigee_delta_kind(1);
pub const PERIGEE_DELTA_CONTENT: perigee_delta_kind = perigee_delta_kind(2);
pub const PERIGEE_DELTA_CALL: perigee_delta_kind = perigee_delta_kind(3);
pub const PERIGEE_DELTA_ARGUMENTS: perigee_delta_kind = perigee_delta_kind(4);
pub const PERIGEE_DELTA_CALL_END: perigee_delta_kind = perigee_delta_kind(5);
pub const PERIGEE_DELTA_END: perigee_delta_kind = perigee_delta_kind(6);
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct perigee_delta {
    pub struct_size: usize,
    pub kind: perigee_delta_kind,
    pub call: usize,
    pub text: *const c_char,
    pub length: usize,
    pub name: *const c_char,
    pub id: *const c_char,
}
#[repr(C)]
pub struct perigee_sampler {
    _data: [u8; 0],
    _marker: PhantomData<(*mut u8, PhantomPinned)>,
}
#[repr(C)]
pub struct perigee_constraint {
    _data: [u8; 0],
    _marker: PhantomData<(*mut u8, PhantomPinned)>,
}
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct perigee_finish(pub c_uint);
pub const PERIGEE_FINISH_NONE: perigee_finish = perigee_finish(0);
pub const PERIGEE_FINISH_STOP: perigee_finish = perigee_finish(1);
pub const PERIGEE_FINISH_STOP_STRING: perigee_finish = perigee_finish(2);
pub const PERIGEE_FINISH_LENGTH: perigee_finish = perigee_finish(3);
pub const PERIGEE_FINISH_CANCELLED: perigee_finish = perigee_finish(4);
pub const PERIGEE_FINISH_CONTEXT_FULL: perigee_finish = perigee_finish(5);
pub const PERIGEE_FINISH_CALLBACK: perigee_finish = perigee_finish(6);
#[repr(C)]
pub struct perigee_generation_options {
    _data: [u8; 0],
    _marker: PhantomData<(*mut u8, PhantomPinned)>,
}
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct perigee_generated {
    pub struct_size: usize,
    pub finish: perigee_finish,
    pub id: i32,
    pub text: *const c_char,
    pub text_length: usize,
    pub log_probability: f64,
    pub top_ids: *const i32,
    pub top_log_probabilities: *const f64,
    pub top_count: usize,
    pub seconds: f64,
    pub prompt_tokens: i64,
    pub tokens: i64,
}
#[repr(C)]
pub struct perigee_generation {
    _data: [u8; 0],
    _marker: PhantomData<(*mut u8, PhantomPinned)>,
}
pub type perigee_generate_fn = Option<unsafe extern "C" fn(*const perigee_generated, *mut c_void) -> c_int>;
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct perigee_batch_item {
    pub struct_size: usize,
    pub session: *mut perigee_session,
    pub tokens: *const i32,
    pub n: usize,
    pub which: perigee_logits,
    pub logits: *const f32,
    pub rows: usize,
    pub status: perigee_status,
    pub error: *mut perigee_error,
}
#[repr(C)]
pub struct perigee_prefix_cache {
    _data: [u8; 0],
    _marker: PhantomData<(*mut u8, PhantomPinned)>,
}
pub type perigee_write_fn = Option<unsafe extern "C" fn(*const c_void, usize, *mut c_void) -> c_int>;
pub type perigee_read_fn = Option<unsafe extern "C" fn(*mut c_void, usize, *mut c_void) -> i64>;
#[repr(C)]
pub struct perigee_queue {
    _data: [u8; 0],
    _marker: PhantomData<(*mut u8, PhantomPinned)>,
}
pub type perigee_queue_fn = Option<unsafe extern "C" fn(i64, *const perigee_generated, *const perigee_error, *mut c_void) -> c_int>;
extern "C" {
    pub fn perigee_version() -> *const c_char;
    pub fn perigee_abi_version() -> i32;
    pub fn perigee_status_name(status: perigee_status) -> *const c_char;
    pub fn perigee_status_text(status: perigee_status) -> *const c_char;
    pub fn perigee_error_status(error: *const perigee_error) -> perigee_status;
    pub fn perigee_error_message(error: *const perigee_error) -> *const c_char;
    pub fn perigee_error_tensor(error: *const perigee_error) -> *const c_char;
    pub fn perigee_error_file(error: *const perigee_error) -> *const c_char;
    pub fn perigee_error_offset(error: *const perigee_error) -> i64;
    pub fn perigee_error_layer(error: *const perigee_error) -> i64;
    pub fn perigee_error_free(error: *mut perigee_error);
    pub fn perigee_cancel_new(out: *mut *mut perigee_cancel, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_cancel_trigger(cancel: *mut perigee_cancel);
    pub fn perigee_cancel_reset(cancel: *mut perigee_cancel);
    pub fn perigee_cancel_triggered(cancel: *const perigee_cancel) -> c_int;
    pub fn perigee_cancel_free(cancel: *mut perigee_cancel);
    pub fn perigee_options_new(out: *mut *mut perigee_options, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_options_free(options: *mut perigee_options);
    pub fn perigee_options_set_int(options: *mut perigee_options, key: perigee_option, value: i64, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_options_set_float(options: *mut perigee_options, key: perigee_option, value: f64, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_options_set_string(options: *mut perigee_options, key: perigee_option, value: *const c_char, length: usize, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_options_set_text(options: *mut perigee_options, name: *const c_char, value: *const c_char, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_option_count() -> usize;
    pub fn perigee_option_describe(index: usize, out: *mut perigee_option_description, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_context_new(options: *const perigee_options, allocator: *const perigee_allocator, log: *const perigee_log, kernels: *const perigee_kernel_set, out: *mut *mut perigee_context, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_context_free(context: *mut perigee_context);
    pub fn perigee_context_threads(context: *const perigee_context) -> usize;
    pub fn perigee_context_kernel_count(context: *const perigee_context) -> usize;
    pub fn perigee_context_kernel(context: *const perigee_context, index: usize, out: *mut perigee_kernel_info, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_kernel_set_new(out: *mut *mut perigee_kernel_set, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_kernel_set_add(set: *mut perigee_kernel_set, row: *const perigee_kernel_row, release: perigee_release_fn, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_kernel_set_free(set: *mut perigee_kernel_set);
    pub fn perigee_context_trace_count(context: *const perigee_context) -> usize;
    pub fn perigee_context_trace(context: *const perigee_context, index: usize, out: *mut perigee_kernel_trace, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_context_check(context: *const perigee_context, out: *mut perigee_kernel_check, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_context_time_kernel(context: *mut perigee_context, index: usize, tokens: usize, out: *mut perigee_kernel_timing, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_model_load(context: *mut perigee_context, path: *const c_char, length: usize, options: *const perigee_options, progress: perigee_progress_fn, progress_user: *mut c_void, cancel: *mut perigee_cancel, out: *mut *mut perigee_model, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_model_free(model: *mut perigee_model);
    pub fn perigee_model_get_info(model: *const perigee_model, out: *mut perigee_model_info, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_model_plan(context: *mut perigee_context, path: *const c_char, length: usize, options: *const perigee_options, out: *mut perigee_plan, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_model_describe(context: *mut perigee_context, path: *const c_char, length: usize, out: *mut *mut perigee_description, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_model_inspect(context: *mut perigee_context, path: *const c_char, length: usize, options: *const perigee_options, description: *mut *mut perigee_description, plan: *mut perigee_plan, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_description_count(description: *const perigee_description) -> usize;
    pub fn perigee_description_component(description: *const perigee_description, index: usize, out: *mut perigee_component, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_description_totals(description: *const perigee_description, out: *mut perigee_totals, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_description_free(description: *mut perigee_description);
    pub fn perigee_session_new(model: *mut perigee_model, options: *const perigee_options, out: *mut *mut perigee_session, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_session_free(session: *mut perigee_session);
    pub fn perigee_session_position(session: *const perigee_session) -> i64;
    pub fn perigee_session_context(session: *const perigee_session) -> i64;
    pub fn perigee_session_vocabulary(session: *const perigee_session) -> usize;
    pub fn perigee_session_reset(session: *mut perigee_session);
    pub fn perigee_decode_step(session: *mut perigee_session, tokens: *const i32, n: usize, which: perigee_logits, logits: *mut *const f32, rows: *mut usize, cancel: *mut perigee_cancel, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_session_statistics(session: *const perigee_session, out: *mut perigee_statistics, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_session_set_trace(session: *mut perigee_session, trace: perigee_trace_fn, user: *mut c_void, release: perigee_release_fn);
    pub fn perigee_model_tokenizer(model: *const perigee_model) -> *const perigee_tokenizer;
    pub fn perigee_tokenizer_open(context: *mut perigee_context, path: *const c_char, length: usize, out: *mut *mut perigee_tokenizer, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_tokenizer_free(tokenizer: *mut perigee_tokenizer);
    pub fn perigee_tokenizer_get_info(tokenizer: *const perigee_tokenizer, out: *mut perigee_tokenizer_info, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_encode_text(tokenizer: *const perigee_tokenizer, text: *const c_char, length: usize, flags: u32, ids: *mut i32, capacity: usize, count: *mut usize, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_encode_markup(tokenizer: *const perigee_tokenizer, text: *const c_char, length: usize, flags: u32, ids: *mut i32, capacity: usize, count: *mut usize, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_decode(tokenizer: *const perigee_tokenizer, ids: *const i32, count: usize, flags: u32, bytes: *mut c_char, capacity: usize, length: *mut usize, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_token_bytes(tokenizer: *const perigee_tokenizer, id: i32, bytes: *mut *const c_char, length: *mut usize, special: *mut i32, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_token_id(tokenizer: *const perigee_tokenizer, name: *const c_char, length: usize, id: *mut i32, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_decoder_new(tokenizer: *const perigee_tokenizer, flags: u32, out: *mut *mut perigee_decoder, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_decoder_push(decoder: *mut perigee_decoder, id: i32, text: *mut *const c_char, length: *mut usize, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_decoder_flush(decoder: *mut perigee_decoder, text: *mut *const c_char, length: *mut usize, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_decoder_free(decoder: *mut perigee_decoder);
    pub fn perigee_chat_render(tokenizer: *const perigee_tokenizer, messages: *const c_char, messages_length: usize, tools: *const c_char, tools_length: usize, options: *const perigee_chat_options, out: *mut *mut perigee_chat, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_chat_ids(chat: *const perigee_chat, count: *mut usize) -> *const i32;
    pub fn perigee_chat_text(chat: *const perigee_chat, length: *mut usize) -> *const c_char;
    pub fn perigee_chat_segment_count(chat: *const perigee_chat) -> usize;
    pub fn perigee_chat_get_segment(chat: *const perigee_chat, index: usize, out: *mut perigee_chat_segment, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_chat_free(chat: *mut perigee_chat);
    pub fn perigee_parser_new(tokenizer: *const perigee_tokenizer, chat: *const perigee_chat, out: *mut *mut perigee_parser, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_parser_push(parser: *mut perigee_parser, id: i32, count: *mut usize, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_parser_finish(parser: *mut perigee_parser, count: *mut usize, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_parser_get_delta(parser: *const perigee_parser, index: usize, out: *mut perigee_delta, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_parser_ended(parser: *const perigee_parser) -> i32;
    pub fn perigee_parser_message(parser: *mut perigee_parser, json: *mut *const c_char, length: *mut usize, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_parser_free(parser: *mut perigee_parser);
    pub fn perigee_argmax(logits: *const f32, count: usize, id: *mut i32, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_top_k(context: *mut perigee_context, logits: *const f32, count: usize, k: usize, ids: *mut i32, values: *mut f32, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_log_probabilities(logits: *const f32, count: usize, ids: *const i32, n: usize, out: *mut f64, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_sampler_new(context: *mut perigee_context, out: *mut *mut perigee_sampler, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_sampler_clone(sampler: *const perigee_sampler, out: *mut *mut perigee_sampler, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_sampler_free(sampler: *mut perigee_sampler);
    pub fn perigee_sampler_add_repetition(sampler: *mut perigee_sampler, penalty: f64, window: usize, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_sampler_add_presence(sampler: *mut perigee_sampler, penalty: f64, window: usize, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_sampler_add_frequency(sampler: *mut perigee_sampler, penalty: f64, window: usize, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_sampler_add_bias(sampler: *mut perigee_sampler, ids: *const i32, biases: *const f32, count: usize, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_sampler_add_temperature(sampler: *mut perigee_sampler, temperature: f64, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_sampler_add_top_k(sampler: *mut perigee_sampler, k: usize, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_sampler_add_top_p(sampler: *mut perigee_sampler, p: f64, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_sampler_add_min_p(sampler: *mut perigee_sampler, p: f64, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_sampler_add_greedy(sampler: *mut perigee_sampler, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_sampler_set_seed(sampler: *mut perigee_sampler, seed: u64);
    pub fn perigee_sampler_sample(sampler: *mut perigee_sampler, logits: *const f32, count: usize, id: *mut i32, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_sampler_accept(sampler: *mut perigee_sampler, ids: *const i32, count: usize, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_sampler_reset(sampler: *mut perigee_sampler);
    pub fn perigee_constraint_from_schema(tokenizer: *const perigee_tokenizer, schema: *const c_char, length: usize, out: *mut *mut perigee_constraint, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_constraint_from_regex(tokenizer: *const perigee_tokenizer, pattern: *const c_char, length: usize, out: *mut *mut perigee_constraint, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_constraint_clone(constraint: *const perigee_constraint, out: *mut *mut perigee_constraint, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_constraint_free(constraint: *mut perigee_constraint);
    pub fn perigee_constraint_allowed(constraint: *mut perigee_constraint, bits: *mut *const u64, count: *mut usize, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_constraint_accept(constraint: *mut perigee_constraint, id: i32, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_constraint_complete(constraint: *const perigee_constraint) -> c_int;
    pub fn perigee_sampler_sample_constrained(sampler: *mut perigee_sampler, logits: *const f32, count: usize, constraint: *mut perigee_constraint, id: *mut i32, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_finish_name(finish: perigee_finish) -> *const c_char;
    pub fn perigee_generation_options_new(context: *mut perigee_context, out: *mut *mut perigee_generation_options, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_generation_options_free(options: *mut perigee_generation_options);
    pub fn perigee_generation_options_set_sampler(options: *mut perigee_generation_options, sampler: *const perigee_sampler, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_generation_options_set_constraint(options: *mut perigee_generation_options, constraint: *const perigee_constraint, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_generation_options_set_max_tokens(options: *mut perigee_generation_options, count: i64, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_generation_options_add_stop_id(options: *mut perigee_generation_options, id: i32, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_generation_options_set_default_stops(options: *mut perigee_generation_options, enabled: c_int, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_generation_options_add_stop_string(options: *mut perigee_generation_options, text: *const c_char, length: usize, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_generation_options_set_log_probabilities(options: *mut perigee_generation_options, top: i32, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_generation_options_set_cancel(options: *mut perigee_generation_options, cancel: *mut perigee_cancel, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_generation_new(session: *mut perigee_session, prompt: *const i32, count: usize, options: *const perigee_generation_options, out: *mut *mut perigee_generation, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_generation_next(generation: *mut perigee_generation, out: *mut perigee_generated, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_generation_sampler(generation: *const perigee_generation, out: *mut *mut perigee_sampler, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_generation_free(generation: *mut perigee_generation);
    pub fn perigee_generate(session: *mut perigee_session, prompt: *const i32, count: usize, options: *const perigee_generation_options, callback: perigee_generate_fn, user: *mut c_void, finish: *mut perigee_finish, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_score(session: *mut perigee_session, ids: *const i32, count: usize, out: *mut f64, cancel: *mut perigee_cancel, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_decode_batch(items: *mut perigee_batch_item, count: usize, cancel: *mut perigee_cancel, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_session_tokens(session: *const perigee_session, tokens: *mut *const i32) -> usize;
    pub fn perigee_session_fork(session: *mut perigee_session, out: *mut *mut perigee_session, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_session_rewind(session: *mut perigee_session, position: i64, nearest: *mut i64, cancel: *mut perigee_cancel, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_session_feed(session: *mut perigee_session, tokens: *const i32, n: usize, which: perigee_logits, logits: *mut *const f32, rows: *mut usize, kept: *mut usize, cancel: *mut perigee_cancel, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_prefix_cache_new(model: *mut perigee_model, bytes: i64, out: *mut *mut perigee_prefix_cache, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_prefix_cache_free(cache: *mut perigee_prefix_cache);
    pub fn perigee_prefix_cache_put(cache: *mut perigee_prefix_cache, session: *mut perigee_session, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_prefix_cache_get(cache: *mut perigee_prefix_cache, tokens: *const i32, n: usize, options: *const perigee_options, out: *mut *mut perigee_session, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_prefix_cache_bytes(cache: *const perigee_prefix_cache) -> i64;
    pub fn perigee_state_size(session: *const perigee_session, sampler: *const perigee_sampler, size: *mut usize, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_state_save(session: *const perigee_session, sampler: *const perigee_sampler, buffer: *mut c_void, capacity: usize, written: *mut usize, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_state_save_to(session: *const perigee_session, sampler: *const perigee_sampler, write: perigee_write_fn, user: *mut c_void, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_state_save_file(session: *const perigee_session, sampler: *const perigee_sampler, path: *const c_char, length: usize, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_state_load(session: *mut perigee_session, sampler: *mut perigee_sampler, buffer: *const c_void, size: usize, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_state_load_from(session: *mut perigee_session, sampler: *mut perigee_sampler, read: perigee_read_fn, user: *mut c_void, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_state_load_file(session: *mut perigee_session, sampler: *mut perigee_sampler, path: *const c_char, length: usize, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_queue_new(model: *mut perigee_model, options: *const perigee_options, active: usize, out: *mut *mut perigee_queue, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_queue_free(queue: *mut perigee_queue);
    pub fn perigee_queue_set_step_seconds(queue: *mut perigee_queue, seconds: f64, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_queue_submit(queue: *mut perigee_queue, prompt: *const i32, count: usize, options: *const perigee_generation_options, callback: perigee_queue_fn, user: *mut c_void, release: perigee_release_fn, request: *mut i64, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_queue_cancel(queue: *mut perigee_queue, request: i64, err: *mut *mut perigee_error) -> perigee_status;
    pub fn perigee_queue_step(queue: *mut perigee_queue, left: *mut usize, err: *mut *mut perigee_error) -> perigee_status;
}
