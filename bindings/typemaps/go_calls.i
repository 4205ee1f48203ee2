/* Go: calls whose structs, views or callbacks the flat layer can't say. A view is an address and a length; numbers and
 * reals are what a struct holds, in the order of its fields. */
%{
static void go_log(int level, const char *message, void *user) {
    perigeeGoLog(level, (char *)message, (uintptr_t)user);
}
static void go_release(void *user) {
    perigeeGoRelease((uintptr_t)user);
}
static int go_queue(int64_t request, const perigee_generated *step, const perigee_error *error, void *user) {
    return perigeeGoQueue(request, (uintptr_t)step, (uintptr_t)error, (uintptr_t)user);
}
static int go_trace(int64_t layer, int64_t position, size_t rows, size_t hidden, const float *values, void *user) {
    return perigeeGoTrace(layer, position, rows, hidden, (void *)values, (uintptr_t)user);
}
static int32_t go_product(void *user, const perigee_matrix *w, size_t first, size_t count, const float *x, size_t ldx,
                          size_t m, float *y, size_t ldy) {
    return perigeeGoProduct((uintptr_t)user, (char *)w->codes + first * w->row_bytes, w->row_bytes, w->cols, count,
                            (void *)x, ldx, m, y, ldy);
}
static void go_step(const perigee_generated *s, int64_t *numbers, double *reals) {
    numbers[0] = s->finish;
    numbers[1] = s->id;
    numbers[2] = (int64_t)(uintptr_t)s->text;
    numbers[3] = s->text ? (int64_t)s->text_length : 0;
    numbers[4] = (int64_t)(uintptr_t)s->top_ids;
    numbers[5] = (int64_t)(uintptr_t)s->top_log_probabilities;
    numbers[6] = (int64_t)s->top_count;
    numbers[7] = s->prompt_tokens;
    numbers[8] = s->tokens;
    reals[0] = s->log_probability;
    reals[1] = s->seconds;
}
%}
%typemap(gotype) (const char *messages, size_t m_length), (const char *tools, size_t t_length),
    (const char *format, size_t f_length), (const char *effort, size_t e_length), (const char *choice, size_t c_length),
    (const char *response, size_t r_length) "string"
%typemap(in) (const char *messages, size_t m_length), (const char *tools, size_t t_length),
    (const char *format, size_t f_length), (const char *effort, size_t e_length), (const char *choice, size_t c_length),
    (const char *response, size_t r_length) %{ $1 = (char *)$input.p; $2 = (size_t)$input.n; %}
%typemap(gotype) const float *biases "[]float32"
%typemap(in) const float *biases %{ $1 = (float *)$input.array; %}
%inline %{
static prg_bytes Bytes(int64_t view, int64_t count) {
    prg_bytes b;
    b.p = (const char *)(uintptr_t)view;
    b.n = (size_t)count;
    return b;
}
static prg_ids Ids(int64_t view, int64_t count) {
    prg_ids b;
    b.p = (const int32_t *)(uintptr_t)view;
    b.n = (size_t)count;
    return b;
}
static prg_doubles Doubles(int64_t view, int64_t count) {
    prg_doubles b;
    b.p = (const double *)(uintptr_t)view;
    b.n = (size_t)count;
    return b;
}
static prg_words Words(int64_t view, int64_t count) {
    prg_words b;
    b.p = (const uint64_t *)(uintptr_t)view;
    b.n = (size_t)count;
    return b;
}
static perigee_status Context_new(const perigee_options *options, uint64_t log, const perigee_kernel_set *kernels,
                                  perigee_context **out, perigee_error **err) {
    perigee_log sink;
    sink.struct_size = sizeof sink;
    sink.write = go_log;
    sink.user = (void *)(uintptr_t)log;
    sink.release = go_release;
    return perigee_context_new(options, NULL, log ? &sink : NULL, kernels, out, err);
}
static perigee_status Kernel_add(perigee_kernel_set *set, const char *name, int dtype, uint64_t product,
                                 perigee_error **err) {
    perigee_kernel_row row;
    memset(&row, 0, sizeof row);
    row.struct_size = sizeof row;
    row.op = PERIGEE_OP_MATMUL;
    row.dtype = (uint32_t)dtype;
    row.flags = PERIGEE_KERNEL_HOST;
    row.priority = 1000;
    row.name = row.numerics = name;
    row.isa = "host";
    row.row_tile = row.token_tile = 1;
    row.user = (void *)(uintptr_t)product;
    row.run.matmul.host = go_product;
    return perigee_kernel_set_add(set, &row, go_release, err);
}
/* numbers: name, op, weight, isa, origin, numerics, precision as views of texts that end in NUL; deterministic, in use */
static perigee_status Kernel_at(const perigee_context *context, int index, int64_t *numbers, size_t count, double *reals,
                                perigee_error **err) {
    perigee_kernel_info k;
    perigee_status st;
    const char *texts[7];
    int i;
    k.struct_size = sizeof k;
    st = perigee_context_kernel(context, (size_t)index, &k, err);
    if (st == PERIGEE_OK && count >= 16) {
        texts[0] = k.name; texts[1] = k.op; texts[2] = k.weight; texts[3] = k.isa; texts[4] = k.origin;
        texts[5] = k.numerics; texts[6] = k.precision;
        for (i = 0; i < 7; i++) {
            numbers[2 * i] = (int64_t)(uintptr_t)texts[i];
            numbers[2 * i + 1] = (int64_t)strlen(texts[i]);
        }
        numbers[14] = k.deterministic;
        numbers[15] = k.in_use;
        reals[0] = k.error_bound;
    }
    return st;
}
/* numbers: kernel, function, op as views; rows, cols, tokens, calls */
static perigee_status Kernel_trace(const perigee_context *context, int index, int64_t *numbers, size_t count,
                                   double *reals, perigee_error **err) {
    perigee_kernel_trace t;
    perigee_status st;
    t.struct_size = sizeof t;
    st = perigee_context_trace(context, (size_t)index, &t, err);
    if (st == PERIGEE_OK && count >= 10) {
        numbers[0] = (int64_t)(uintptr_t)t.kernel; numbers[1] = (int64_t)strlen(t.kernel);
        numbers[2] = (int64_t)(uintptr_t)t.function; numbers[3] = (int64_t)strlen(t.function);
        numbers[4] = (int64_t)(uintptr_t)t.op; numbers[5] = (int64_t)strlen(t.op);
        numbers[6] = (int64_t)t.rows; numbers[7] = (int64_t)t.cols; numbers[8] = (int64_t)t.tokens;
        numbers[9] = t.calls;
        reals[0] = t.seconds;
    }
    return st;
}
/* numbers: calls, skipped, different; then of the first difference kernel, reference, op, function, output as views;
 * rows, cols, tokens, index, width. reals: largest, value, expected, allowed */
static perigee_status Kernel_check(const perigee_context *context, int64_t *numbers, size_t count, double *reals,
                                   perigee_error **err) {
    perigee_kernel_check c;
    perigee_status st;
    const char *texts[5];
    int i;
    c.struct_size = sizeof c;
    st = perigee_context_check(context, &c, err);
    if (st == PERIGEE_OK && count >= 18) {
        texts[0] = c.kernel; texts[1] = c.reference; texts[2] = c.op; texts[3] = c.function; texts[4] = c.output;
        numbers[0] = c.calls; numbers[1] = c.skipped; numbers[2] = c.different;
        for (i = 0; i < 5; i++) {
            numbers[3 + 2 * i] = (int64_t)(uintptr_t)texts[i];
            numbers[4 + 2 * i] = texts[i] ? (int64_t)strlen(texts[i]) : 0;
        }
        numbers[13] = (int64_t)c.rows; numbers[14] = (int64_t)c.cols; numbers[15] = (int64_t)c.tokens;
        numbers[16] = (int64_t)c.index; numbers[17] = (int64_t)c.width;
        reals[0] = c.largest; reals[1] = c.value; reals[2] = c.expected; reals[3] = c.allowed;
    }
    return st;
}
/* numbers: rows, cols, tokens, bytes, multiply-adds */
static perigee_status Kernel_time(perigee_context *context, int index, int tokens, int64_t *numbers, size_t count,
                                  double *reals, perigee_error **err) {
    perigee_kernel_timing t;
    perigee_status st;
    t.struct_size = sizeof t;
    st = perigee_context_time_kernel(context, (size_t)index, (size_t)tokens, &t, err);
    if (st == PERIGEE_OK && count >= 5) {
        numbers[0] = (int64_t)t.rows; numbers[1] = (int64_t)t.cols; numbers[2] = (int64_t)t.tokens;
        numbers[3] = t.bytes; numbers[4] = t.multiply_adds;
        reals[0] = t.seconds;
    }
    return st;
}
static perigee_status Model_plan(perigee_context *context, const char *path, size_t length,
                                 const perigee_options *options, int64_t *numbers, size_t count, perigee_error **err) {
    perigee_plan p;
    perigee_status st;
    p.struct_size = sizeof p;
    st = perigee_model_plan(context, path, length, options, &p, err);
    if (st == PERIGEE_OK && count >= 14) {
        numbers[0] = p.disk_bytes; numbers[1] = p.resident_bytes; numbers[2] = p.relaid_bytes;
        numbers[3] = p.table_bytes; numbers[4] = p.token_bytes; numbers[5] = p.session_fixed_bytes;
        numbers[6] = p.session_token_bytes; numbers[7] = p.cache_block_tokens; numbers[8] = p.scratch_bytes;
        numbers[9] = p.chunk; numbers[10] = p.context; numbers[11] = p.available_bytes;
        numbers[12] = p.mapped; numbers[13] = p.fits;
    }
    return st;
}
static perigee_status Totals(const perigee_description *d, int64_t *numbers, size_t count, perigee_error **err) {
    perigee_totals t;
    perigee_status st;
    t.struct_size = sizeof t;
    st = perigee_description_totals(d, &t, err);
    if (st == PERIGEE_OK && count >= 10) {
        numbers[0] = (int64_t)(uintptr_t)t.family; numbers[1] = (int64_t)strlen(t.family);
        numbers[2] = t.parameters; numbers[3] = t.active; numbers[4] = t.disk_parameters; numbers[5] = t.disk_bytes;
        numbers[6] = t.layers; numbers[7] = t.kda_layers; numbers[8] = t.mla_layers; numbers[9] = t.moe_layers;
    }
    return st;
}
static perigee_status Component_at(const perigee_description *d, int index, int64_t *numbers, size_t count,
                                   perigee_error **err) {
    perigee_component c;
    perigee_status st;
    const char *texts[5];
    int i;
    c.struct_size = sizeof c;
    st = perigee_description_component(d, (size_t)index, &c, err);
    if (st == PERIGEE_OK && count >= 16) {
        texts[0] = c.name; texts[1] = c.title; texts[2] = c.formula; texts[3] = c.shape; texts[4] = c.stored;
        for (i = 0; i < 5; i++) {
            numbers[2 * i] = (int64_t)(uintptr_t)texts[i];
            numbers[2 * i + 1] = (int64_t)strlen(texts[i]);
        }
        numbers[10] = c.per_instance; numbers[11] = c.instances; numbers[12] = c.total; numbers[13] = c.active;
        numbers[14] = c.disk_total; numbers[15] = c.disk_bytes;
    }
    return st;
}
static perigee_status Tokenizer_info(const perigee_tokenizer *t, int64_t *numbers, size_t count, perigee_error **err) {
    perigee_tokenizer_info i;
    perigee_status st;
    i.struct_size = sizeof i;
    st = perigee_tokenizer_get_info(t, &i, err);
    if (st == PERIGEE_OK && count >= 8) {
        numbers[0] = (int64_t)(uintptr_t)i.family; numbers[1] = (int64_t)strlen(i.family);
        numbers[2] = (int64_t)(uintptr_t)i.format; numbers[3] = (int64_t)strlen(i.format);
        numbers[4] = i.base; numbers[5] = i.vocabulary;
        numbers[6] = (int64_t)(uintptr_t)i.end_ids; numbers[7] = (int64_t)i.end_count;
    }
    return st;
}
static perigee_status Token_bytes(const perigee_tokenizer *t, int32_t token, int64_t *numbers, size_t count,
                                  perigee_error **err) {
    const char *p = NULL;
    size_t n = 0;
    int32_t special = 0;
    perigee_status st = perigee_token_bytes(t, token, &p, &n, &special, err);
    if (count >= 3) {
        numbers[0] = (int64_t)(uintptr_t)p; numbers[1] = (int64_t)n; numbers[2] = special;
    }
    return st;
}
static perigee_status Decoder_push(perigee_decoder *d, int32_t token, int64_t *numbers, size_t count,
                                   perigee_error **err) {
    const char *p = NULL;
    size_t n = 0;
    perigee_status st = perigee_decoder_push(d, token, &p, &n, err);
    if (count >= 2) {
        numbers[0] = (int64_t)(uintptr_t)p; numbers[1] = (int64_t)n;
    }
    return st;
}
static perigee_status Decoder_flush(perigee_decoder *d, int64_t *numbers, size_t count, perigee_error **err) {
    const char *p = NULL;
    size_t n = 0;
    perigee_status st = perigee_decoder_flush(d, &p, &n, err);
    if (count >= 2) {
        numbers[0] = (int64_t)(uintptr_t)p; numbers[1] = (int64_t)n;
    }
    return st;
}
static perigee_status Chat_render(const perigee_tokenizer *t, const char *messages, size_t m_length, const char *tools,
                                  size_t t_length, int thinking, int omit, const char *format, size_t f_length,
                                  const char *effort, size_t e_length, const char *choice, size_t c_length,
                                  const char *response, size_t r_length, perigee_chat **out, perigee_error **err) {
    perigee_chat_options o; /* an empty text is none */
    memset(&o, 0, sizeof o);
    o.struct_size = sizeof o;
    o.thinking = (perigee_thinking)thinking;
    o.omit_generation_prompt = omit;
    o.format = f_length ? format : NULL;
    o.format_length = f_length;
    o.effort = e_length ? effort : NULL;
    o.effort_length = e_length;
    o.tool_choice = c_length ? choice : NULL;
    o.tool_choice_length = c_length;
    o.response_format = r_length ? response : NULL;
    o.response_format_length = r_length;
    return perigee_chat_render(t, messages, m_length, t_length ? tools : NULL, t_length, &o, out, err);
}
static prg_ids Chat_ids(const perigee_chat *chat) {
    prg_ids v;
    v.p = perigee_chat_ids(chat, &v.n);
    return v;
}
static prg_bytes Chat_text(const perigee_chat *chat) {
    prg_bytes v;
    v.p = perigee_chat_text(chat, &v.n);
    return v;
}
static perigee_status Chat_segment(const perigee_chat *chat, int index, int64_t *numbers, size_t count,
                                   perigee_error **err) {
    perigee_chat_segment s;
    perigee_status st;
    s.struct_size = sizeof s;
    st = perigee_chat_get_segment(chat, (size_t)index, &s, err);
    if (st == PERIGEE_OK && count >= 5) {
        numbers[0] = (int64_t)(uintptr_t)s.text; numbers[1] = (int64_t)s.length; numbers[2] = s.control;
        numbers[3] = (int64_t)s.first; numbers[4] = (int64_t)s.count;
    }
    return st;
}
static perigee_status Parser_delta(const perigee_parser *parser, int index, int64_t *numbers, size_t count,
                                   perigee_error **err) {
    perigee_delta d;
    perigee_status st;
    d.struct_size = sizeof d;
    st = perigee_parser_get_delta(parser, (size_t)index, &d, err);
    if (st == PERIGEE_OK && count >= 8) {
        numbers[0] = d.kind; numbers[1] = (int64_t)d.call;
        numbers[2] = (int64_t)(uintptr_t)d.text; numbers[3] = (int64_t)d.length;
        numbers[4] = (int64_t)(uintptr_t)d.name; numbers[5] = (int64_t)strlen(d.name);
        numbers[6] = (int64_t)(uintptr_t)d.id; numbers[7] = (int64_t)strlen(d.id);
    }
    return st;
}
static perigee_status Parser_message(perigee_parser *parser, int64_t *numbers, size_t count, perigee_error **err) {
    const char *p = NULL;
    size_t n = 0;
    perigee_status st = perigee_parser_message(parser, &p, &n, err);
    if (count >= 2) {
        numbers[0] = (int64_t)(uintptr_t)p; numbers[1] = (int64_t)n;
    }
    return st;
}
static perigee_status Top_k(perigee_context *context, const float *logits, size_t count, uint64_t k, int32_t *chosen,
                            float *values, perigee_error **err) {
    return perigee_top_k(context, logits, count, (size_t)k, chosen, values, err);
}
static perigee_status Log_probabilities(const float *logits, size_t count, const int32_t *ids, size_t n, double *out,
                                        perigee_error **err) {
    return perigee_log_probabilities(logits, count, ids, n, out, err);
}
static perigee_status Score(perigee_session *session, const int32_t *ids, size_t count, double *out,
                            perigee_cancel *cancel, perigee_error **err) {
    return perigee_score(session, ids, count, out, cancel, err);
}
static perigee_status Sampler_bias(perigee_sampler *sampler, const int32_t *ids, size_t n, const float *biases,
                                   perigee_error **err) {
    return perigee_sampler_add_bias(sampler, ids, biases, n, err);
}
static perigee_status Constraint_allowed(perigee_constraint *constraint, int64_t *numbers, size_t count,
                                         perigee_error **err) {
    const uint64_t *bits = NULL;
    size_t n = 0;
    perigee_status st = perigee_constraint_allowed(constraint, &bits, &n, err);
    if (count >= 2) {
        numbers[0] = (int64_t)(uintptr_t)bits; numbers[1] = (int64_t)n;
    }
    return st;
}
static perigee_status Generation_next(perigee_generation *generation, int64_t *numbers, size_t count, double *reals,
                                      perigee_error **err) {
    perigee_generated s;
    perigee_status st;
    s.struct_size = sizeof s;
    st = perigee_generation_next(generation, &s, err);
    if (st == PERIGEE_OK && count >= 9) {
        go_step(&s, numbers, reals);
    }
    return st;
}
static void Step_read(uint64_t step, int64_t *numbers, size_t count, double *reals) {
    if (count >= 9) {
        go_step((const perigee_generated *)(uintptr_t)step, numbers, reals);
    }
}
static perigee_status Queue_submit(perigee_queue *queue, const int32_t *prompt, size_t count,
                                   const perigee_generation_options *options, uint64_t callback, int64_t *request,
                                   perigee_error **err) {
    return perigee_queue_submit(queue, prompt, count, options, go_queue, (void *)(uintptr_t)callback, go_release,
                                request, err);
}
static void Session_trace(perigee_session *session, uint64_t trace) {
    perigee_session_set_trace(session, trace ? go_trace : NULL, (void *)(uintptr_t)trace, trace ? go_release : NULL);
}
static perigee_status Session_counters(const perigee_session *session, int64_t *numbers, size_t count, double *reals,
                                       perigee_error **err) {
    perigee_statistics s;
    perigee_status st;
    s.struct_size = sizeof s;
    st = perigee_session_statistics(session, &s, err);
    if (st == PERIGEE_OK && count >= 6) {
        numbers[0] = s.tokens; numbers[1] = s.steps; numbers[2] = s.weight_bytes; numbers[3] = s.expert_reads;
        numbers[4] = s.cache_hits; numbers[5] = s.memory_bytes;
        reals[0] = s.seconds;
        reals[1] = s.wait_seconds;
    }
    return st;
}
/* numbers: for each item session, first id and number of ids in `ids`; then status, view of logits, error */
static perigee_status Batch(int64_t *numbers, size_t count, const int32_t *ids, size_t n, perigee_cancel *cancel,
                            perigee_error **err) {
    size_t i, items = count / 6;
    perigee_status st;
    perigee_batch_item *item = (perigee_batch_item *)calloc(items ? items : 1, sizeof *item);
    if (!item) {
        *err = NULL;
        return PERIGEE_E_MEMORY;
    }
    for (i = 0; i < items; i++) {
        item[i].struct_size = sizeof *item;
        item[i].session = (perigee_session *)(uintptr_t)numbers[6 * i];
        item[i].tokens = ids + numbers[6 * i + 1];
        item[i].n = (size_t)numbers[6 * i + 2];
        item[i].which = PERIGEE_LOGITS_LAST;
    }
    (void)n;
    st = perigee_decode_batch(item, items, cancel, err);
    for (i = 0; i < items; i++) {
        numbers[6 * i + 3] = item[i].status;
        numbers[6 * i + 4] = (int64_t)(uintptr_t)item[i].logits;
        numbers[6 * i + 5] = (int64_t)(uintptr_t)item[i].error;
    }
    free(item);
    return st;
}
static int Bench_steps(perigee_session *session, int32_t token, int times) {
    int i, failed = 0; /* the bare C calls, to measure by */
    for (i = 0; i < times; i++) {
        const float *p;
        size_t rows;
        perigee_session_reset(session);
        failed += perigee_decode_step(session, &token, 1, PERIGEE_LOGITS_LAST, &p, &rows, NULL, NULL) != PERIGEE_OK;
    }
    return failed;
}
%}
