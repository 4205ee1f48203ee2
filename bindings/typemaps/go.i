/* Go: flat functions over uintptr handles; the public package on top is written by hand. */
#pragma SWIG nowarn=314 /* fields of ignored structs that are keywords of Go */
%nodefaultctor;
%nodefaultdtor;
%{
#include <stdlib.h>
#include <string.h>
#include <perigee/batch.h>
#include <perigee/queue.h>
#include <perigee/state.h>
#include <perigee/sys/kernel_set.h>
#include <perigee/sys/kernel_watch.h>
%}

/* Structs are filled in and read through the small functions below: a Go struct would fix their layout. */
%rename("$ignore", %$isclass) "";
/* callbacks come through exported Go functions */
%ignore perigee_context_new;
%ignore perigee_context_kernel;
%ignore perigee_context_trace;
%ignore perigee_context_check;
%ignore perigee_context_time_kernel;
%ignore perigee_model_load;
%ignore perigee_model_get_info;
%ignore perigee_model_plan;
%ignore perigee_model_inspect; /* describe and plan are there */
%ignore perigee_description_component;
%ignore perigee_description_totals;
%ignore perigee_option_describe;
%ignore perigee_session_statistics;
%ignore perigee_session_set_trace;
%ignore perigee_session_tokens;
%ignore perigee_decode_batch;
%ignore perigee_state_save_to;
%ignore perigee_state_load_from;
%ignore perigee_decode_step;
%ignore perigee_session_feed;
%ignore perigee_kernel_set_add;
%ignore perigee_token_bytes;
%ignore perigee_tokenizer_get_info;
%ignore perigee_decoder_push;
%ignore perigee_decoder_flush;
%ignore perigee_chat_render;
%ignore perigee_chat_ids;
%ignore perigee_chat_text;
%ignore perigee_chat_get_segment;
%ignore perigee_parser_get_delta;
%ignore perigee_parser_message;
%ignore perigee_top_k;
%ignore perigee_log_probabilities;
%ignore perigee_sampler_add_bias;
%ignore perigee_constraint_allowed;
%ignore perigee_generation_next;
%ignore perigee_generate;
%ignore perigee_queue_submit;
%ignore perigee_score;
%ignore perigee_generate_fn;
%ignore perigee_queue_fn;
%ignore perigee_kernel_plugin_fn;
%ignore perigee_progress_fn;
%ignore perigee_trace_fn;
%ignore perigee_release_fn;
%ignore perigee_log_fn;
%ignore perigee_write_fn;
%ignore perigee_read_fn;

/* handles, and where handles and errors go */
%define GO_HANDLE(T)
%typemap(gotype) T *, const T * "uintptr"
%typemap(in) T *, const T * %{ $1 = *($1_ltype *)&$input; %}
%typemap(out) T *, const T * %{ *($1_ltype *)&$result = $1; %}
%typemap(gotype) T ** "*uintptr"
%typemap(in) T ** %{ $1 = ($1_ltype)$input; %}
%enddef
GO_HANDLE(perigee_error)
GO_HANDLE(perigee_options)
GO_HANDLE(perigee_cancel)
GO_HANDLE(perigee_context)
GO_HANDLE(perigee_model)
GO_HANDLE(perigee_description)
GO_HANDLE(perigee_session)
GO_HANDLE(perigee_prefix_cache)
GO_HANDLE(perigee_sampler)
GO_HANDLE(perigee_constraint)
GO_HANDLE(perigee_tokenizer)
GO_HANDLE(perigee_decoder)
GO_HANDLE(perigee_chat)
GO_HANDLE(perigee_parser)
GO_HANDLE(perigee_generation_options)
GO_HANDLE(perigee_generation)
GO_HANDLE(perigee_queue)
GO_HANDLE(perigee_kernel_set)

%typemap(gotype) int64_t *nearest "*int64"
%typemap(in) int64_t *nearest %{ $1 = ($1_ltype)$input; %}
%typemap(gotype) uint64_t *view "*uint64"
%typemap(in) uint64_t *view %{ $1 = ($1_ltype)$input; %}
%typemap(gotype) size_t *size, size_t *written, size_t *rows, size_t *kept, size_t *n, size_t *count, size_t *length, size_t *left "*uint64"
%typemap(in) size_t *size, size_t *written, size_t *rows, size_t *kept, size_t *n, size_t *count, size_t *length, size_t *left %{ $1 = ($1_ltype)$input; %}

%typemap(gotype) int32_t *id, int32_t *special "*int32"
%typemap(in) int32_t *id, int32_t *special %{ $1 = (int32_t *)$input; %}
%typemap(gotype) int64_t *request "*int64"
%typemap(in) int64_t *request %{ $1 = (int64_t *)$input; %}
%typemap(gotype) double *reals, double *out "[]float64"
%typemap(in) double *reals, double *out %{ $1 = (double *)$input.array; %}
%typemap(gotype) float *values "[]float32"
%typemap(in) float *values %{ $1 = (float *)$input.array; %}
%typemap(gotype) int32_t *chosen "[]int32"
%typemap(in) int32_t *chosen %{ $1 = (int32_t *)$input.array; %}

/* slices and strings without copies */
%typemap(gotype) (const int32_t *tokens, size_t n), (const int32_t *ids, size_t n), (const int32_t *ids, size_t count),
    (const int32_t *prompt, size_t count), (int32_t *ids, size_t capacity) "[]int32"
%typemap(in) (const int32_t *tokens, size_t n), (const int32_t *ids, size_t n), (const int32_t *ids, size_t count),
    (const int32_t *prompt, size_t count), (int32_t *ids, size_t capacity) %{ $1 = (int32_t *)$input.array; $2 = (size_t)$input.len; %}
%typemap(gotype) (const float *logits, size_t count) "[]float32"
%typemap(in) (const float *logits, size_t count) %{ $1 = (float *)$input.array; $2 = (size_t)$input.len; %}
%typemap(gotype) (void *buffer, size_t capacity), (const void *buffer, size_t size), (char *bytes, size_t capacity) "[]byte"
%typemap(in) (void *buffer, size_t capacity), (const void *buffer, size_t size), (char *bytes, size_t capacity)
    %{ $1 = ($1_ltype)$input.array; $2 = (size_t)$input.len; %}
%typemap(gotype) (const char *path, size_t length), (const char *value, size_t length), (const char *text, size_t length),
    (const char *name, size_t length), (const char *schema, size_t length), (const char *pattern, size_t length) "string"
%typemap(in) (const char *path, size_t length), (const char *value, size_t length), (const char *text, size_t length),
    (const char *name, size_t length), (const char *schema, size_t length), (const char *pattern, size_t length)
    %{ $1 = (char *)$input.p; $2 = (size_t)$input.n; %}

%typemap(gotype) (int64_t *numbers, size_t count) "[]int64"
%typemap(in) (int64_t *numbers, size_t count) %{ $1 = (int64_t *)$input.array; $2 = (size_t)$input.len; %}

/* a view of C memory */
%{
typedef struct prg_floats { const float *p; size_t n; } prg_floats;
typedef struct prg_ids { const int32_t *p; size_t n; } prg_ids;
typedef struct prg_bytes { const char *p; size_t n; } prg_bytes;
typedef struct prg_doubles { const double *p; size_t n; } prg_doubles;
typedef struct prg_words { const uint64_t *p; size_t n; } prg_words;
%}
%typemap(gotype) prg_floats "[]float32"
%typemap(out) prg_floats %{ $result.array = (void *)$1.p; $result.len = $result.cap = (intgo)$1.n; %}
%typemap(gotype) prg_ids "[]int32"
%typemap(out) prg_ids %{ $result.array = (void *)$1.p; $result.len = $result.cap = (intgo)$1.n; %}
%typemap(gotype) prg_bytes "[]byte"
%typemap(out) prg_bytes %{ $result.array = (void *)$1.p; $result.len = $result.cap = (intgo)$1.n; %}
%typemap(gotype) prg_doubles "[]float64"
%typemap(out) prg_doubles %{ $result.array = (void *)$1.p; $result.len = $result.cap = (intgo)$1.n; %}
%typemap(gotype) prg_words "[]uint64"
%typemap(out) prg_words %{ $result.array = (void *)$1.p; $result.len = $result.cap = (intgo)$1.n; %}

/* statuses and other enumerations are plain numbers on this level */
%typemap(gotype) enum SWIGTYPE "int"
%typemap(imtype) enum SWIGTYPE "int"
%typemap(in) enum SWIGTYPE %{ $1 = ($1_ltype)$input; %}
%typemap(out) enum SWIGTYPE %{ $result = (intgo)$1; %}
%rename("$ignore", %$isenumitem) "";
%rename("$ignore", %$isenum) "";

%{
/* exported by callback.go */
extern void perigeeGoLog(int level, char *message, uintptr_t handle);
extern void perigeeGoRelease(uintptr_t handle);
extern int perigeeGoQueue(int64_t request, uintptr_t step, uintptr_t error, uintptr_t handle);
extern int perigeeGoTrace(int64_t layer, int64_t position, size_t rows, size_t hidden, void *values, uintptr_t handle);
extern int32_t perigeeGoProduct(uintptr_t handle, void *codes, size_t row_bytes, size_t columns, size_t count, void *x,
                                size_t ldx, size_t m, void *y, size_t ldy);
extern int perigeeGoProgress(int64_t done, int64_t total, uintptr_t handle);
extern int perigeeGoWrite(void *data, size_t size, uintptr_t handle);
extern int64_t perigeeGoRead(void *data, size_t size, uintptr_t handle);
static int go_progress(int64_t done, int64_t total, void *user) {
    return perigeeGoProgress(done, total, (uintptr_t)user);
}
static int go_write(const void *data, size_t size, void *user) {
    return perigeeGoWrite((void *)data, size, (uintptr_t)user);
}
static int64_t go_read(void *data, size_t size, void *user) {
    return perigeeGoRead(data, size, (uintptr_t)user);
}
%}

%ignore model_info;
%ignore option_at;
%inline %{
static perigee_status Model_load(perigee_context *context, const char *path, size_t length,
                                 const perigee_options *options, uint64_t progress, perigee_cancel *cancel,
                                 perigee_model **out, perigee_error **err) {
    return perigee_model_load(context, path, length, options, progress ? go_progress : NULL, (void *)(uintptr_t)progress,
                              cancel, out, err);
}
static perigee_status State_save_to(const perigee_session *session, const perigee_sampler *sampler, uint64_t writer, perigee_error **err) {
    return perigee_state_save_to(session, sampler, go_write, (void *)(uintptr_t)writer, err);
}
static perigee_status State_load_from(perigee_session *session, perigee_sampler *sampler, uint64_t reader, perigee_error **err) {
    return perigee_state_load_from(session, sampler, go_read, (void *)(uintptr_t)reader, err);
}
static perigee_status Decode_step(perigee_session *session, const int32_t *tokens, size_t n, int which, uint64_t *view,
                                  size_t *rows, perigee_cancel *cancel, perigee_error **err) {
    const float *p = NULL;
    perigee_status st = perigee_decode_step(session, tokens, n, (perigee_logits)which, &p, rows, cancel, err);
    *view = (uint64_t)(uintptr_t)p;
    return st;
}
static perigee_status Session_feed(perigee_session *session, const int32_t *tokens, size_t n, int which, uint64_t *view,
                                   size_t *rows, size_t *kept, perigee_cancel *cancel, perigee_error **err) {
    const float *p = NULL;
    perigee_status st = perigee_session_feed(session, tokens, n, (perigee_logits)which, &p, rows, kept, cancel, err);
    *view = (uint64_t)(uintptr_t)p;
    return st;
}
static prg_floats Floats(uint64_t view, uint64_t count) {
    prg_floats f;
    f.p = (const float *)(uintptr_t)view;
    f.n = (size_t)count;
    return f;
}
static perigee_model_info model_info(const perigee_model *model) {
    perigee_model_info i;
    perigee_error *e = NULL;
    memset(&i, 0, sizeof i);
    i.struct_size = sizeof i;
    perigee_model_get_info(model, &i, &e);
    perigee_error_free(e);
    return i;
}
static int64_t Model_vocabulary(const perigee_model *model) {
    return model_info(model).vocabulary;
}
static const char *Model_family(const perigee_model *model) {
    return model_info(model).family;
}
static prg_ids Model_end_ids(const perigee_model *model) {
    perigee_model_info i = model_info(model);
    prg_ids v;
    v.p = i.end_ids;
    v.n = i.end_count;
    return v;
}
static void Model_numbers(const perigee_model *model, int64_t *numbers, size_t count) {
    perigee_model_info i = model_info(model);
    int64_t all[8];
    all[0] = i.vocabulary;
    all[1] = i.hidden;
    all[2] = i.layers;
    all[3] = i.kda_layers;
    all[4] = i.context;
    all[5] = i.weight_bytes;
    all[6] = i.resident_bytes;
    all[7] = i.token_bytes;
    memcpy(numbers, all, (count < 8 ? count : 8) * sizeof *all);
}
static perigee_option_description option_at(int index) {
    perigee_option_description d;
    perigee_error *e = NULL;
    memset(&d, 0, sizeof d);
    d.struct_size = sizeof d;
    perigee_option_describe((size_t)index, &d, &e);
    perigee_error_free(e);
    return d;
}
static const char *Option_name(int index) {
    return option_at(index).name;
}
static const char *Option_help(int index) {
    return option_at(index).help;
}
static const char *Option_default(int index) {
    return option_at(index).default_text;
}
static int Option_scope(int index) {
    return (int)option_at(index).scope;
}
static prg_ids Session_tokens(const perigee_session *session) {
    prg_ids v;
    v.n = perigee_session_tokens(session, &v.p);
    return v;
}
%}
%include "typemaps/go_calls.i"
