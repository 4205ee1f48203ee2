/* Lua: samplers, constraints, generations, batch, queue, prefix cache. */
%newobject perigee_sampler::perigee_sampler;
%extend perigee_sampler {
    perigee_sampler(lua_State *L, perigee_context *needed) {
        perigee_sampler *s = NULL;
        perigee_error *e = NULL;
        perigee_status st = perigee_sampler_new(needed, &s, &e);
        if (st) raise_status(L, st, e);
        return s;
    }
    ~perigee_sampler() { perigee_sampler_free($self); }
    lua_results l_clone(lua_State *L) {
        perigee_sampler *s = NULL;
        perigee_error *e = NULL;
        perigee_status st = perigee_sampler_clone($self, &s, &e);
        if (st) return raise_status(L, st, e);
        SWIG_NewPointerObj(L, s, SWIGTYPE_p_perigee_sampler, 1);
        return 1;
    }
    lua_results l_repetition(lua_State *L, double penalty, unsigned long window) {
        perigee_error *e = NULL;
        perigee_status st = perigee_sampler_add_repetition($self, penalty, window, &e);
        return st ? raise_status(L, st, e) : chain(L);
    }
    lua_results l_presence(lua_State *L, double penalty, unsigned long window) {
        perigee_error *e = NULL;
        perigee_status st = perigee_sampler_add_presence($self, penalty, window, &e);
        return st ? raise_status(L, st, e) : chain(L);
    }
    lua_results l_frequency(lua_State *L, double penalty, unsigned long window) {
        perigee_error *e = NULL;
        perigee_status st = perigee_sampler_add_frequency($self, penalty, window, &e);
        return st ? raise_status(L, st, e) : chain(L);
    }
    lua_results l_temperature(lua_State *L, double temperature) {
        perigee_error *e = NULL;
        perigee_status st = perigee_sampler_add_temperature($self, temperature, &e);
        return st ? raise_status(L, st, e) : chain(L);
    }
    lua_results l_top_k(lua_State *L, unsigned long k) {
        perigee_error *e = NULL;
        perigee_status st = perigee_sampler_add_top_k($self, k, &e);
        return st ? raise_status(L, st, e) : chain(L);
    }
    lua_results l_top_p(lua_State *L, double p) {
        perigee_error *e = NULL;
        perigee_status st = perigee_sampler_add_top_p($self, p, &e);
        return st ? raise_status(L, st, e) : chain(L);
    }
    lua_results l_min_p(lua_State *L, double p) {
        perigee_error *e = NULL;
        perigee_status st = perigee_sampler_add_min_p($self, p, &e);
        return st ? raise_status(L, st, e) : chain(L);
    }
    lua_results l_greedy(lua_State *L) {
        perigee_error *e = NULL;
        perigee_status st = perigee_sampler_add_greedy($self, &e);
        return st ? raise_status(L, st, e) : chain(L);
    }
    /* bias({[id] = number, ...}) */
    lua_results l_bias(lua_State *L, lua_slot biases) {
        size_t n = 0;
        int32_t *ids;
        float *values;
        perigee_error *e = NULL;
        perigee_status st;
        luaL_checktype(L, biases, LUA_TTABLE);
        for (lua_pushnil(L); lua_next(L, biases); lua_pop(L, 1)) n++;
        ids = (int32_t *)lua_newuserdatauv(L, (n + 1) * sizeof *ids, 0);
        values = (float *)lua_newuserdatauv(L, (n + 1) * sizeof *values, 0);
        n = 0;
        for (lua_pushnil(L); lua_next(L, biases); lua_pop(L, 1)) {
            ids[n] = (int32_t)luaL_checkinteger(L, -2);
            values[n++] = (float)luaL_checknumber(L, -1);
        }
        st = perigee_sampler_add_bias($self, ids, values, n, &e);
        return st ? raise_status(L, st, e) : chain(L);
    }
    lua_results l_seed(lua_State *L, lua_slot seed) {
        perigee_sampler_set_seed($self, (uint64_t)luaL_checkinteger(L, seed));
        return chain(L);
    }
    /* sample(logits [, constraint]): an id */
    lua_results l_sample(lua_State *L, lua_slot logits, perigee_constraint *constraint = NULL) {
        size_t n;
        const float *values = to_logits(L, logits, &n);
        int32_t id = 0;
        perigee_error *e = NULL;
        perigee_status st = perigee_sampler_sample_constrained($self, values, n, constraint, &id, &e);
        if (st) return raise_status(L, st, e);
        lua_pushinteger(L, id);
        return 1;
    }
    void l_accept(lua_State *L, lua_slot ids) {
        size_t n;
        const int32_t *v = to_tokens(L, ids, &n);
        perigee_error *e = NULL;
        perigee_status st = perigee_sampler_accept($self, v, n, &e);
        if (st) raise_status(L, st, e);
    }
    void l_reset() { perigee_sampler_reset($self); }
}

%newobject perigee_constraint::perigee_constraint;
%extend perigee_constraint {
    /* Constraint(tokenizer, "schema" | "regex", text) */
    perigee_constraint(lua_State *L, perigee_tokenizer *needed, lua_slot kind, lua_slot text) {
        static const char *const names[] = {"schema", "regex", NULL};
        perigee_constraint *c = NULL;
        perigee_error *e = NULL;
        size_t n;
        const char *t = luaL_checklstring(L, text, &n);
        perigee_status st = luaL_checkoption(L, kind, NULL, names) == 0
                                ? perigee_constraint_from_schema(needed, t, n, &c, &e)
                                : perigee_constraint_from_regex(needed, t, n, &c, &e);
        if (st) raise_status(L, st, e);
        return c;
    }
    ~perigee_constraint() { perigee_constraint_free($self); }
    lua_results l_clone(lua_State *L) {
        perigee_constraint *c = NULL;
        perigee_error *e = NULL;
        perigee_status st = perigee_constraint_clone($self, &c, &e);
        if (st) return raise_status(L, st, e);
        SWIG_NewPointerObj(L, c, SWIGTYPE_p_perigee_constraint, 1);
        return 1;
    }
    /* the ids that can go on */
    lua_results l_allowed(lua_State *L) {
        const uint64_t *bits = NULL;
        size_t n = 0, i;
        lua_Integer k = 0;
        perigee_error *e = NULL;
        perigee_status st = perigee_constraint_allowed($self, &bits, &n, &e);
        if (st) return raise_status(L, st, e);
        lua_newtable(L);
        for (i = 0; i < n; i++) {
            if (bits[i / 64] >> (i % 64) & 1) {
                lua_pushinteger(L, (lua_Integer)i);
                lua_rawseti(L, -2, ++k);
            }
        }
        return 1;
    }
    void l_accept(lua_State *L, int32_t id) {
        perigee_error *e = NULL;
        perigee_status st = perigee_constraint_accept($self, id, &e);
        if (st) raise_status(L, st, e);
    }
    /* "open", "may end" or "whole" */
    const char *l_complete() {
        static const char *const names[] = {"open", "may end", "whole"};
        int complete = perigee_constraint_complete($self);
        return names[complete < 0 || complete > 2 ? 1 : complete];
    }
}

%newobject perigee_generation_options::perigee_generation_options;
%extend perigee_generation_options {
    /* GenerationOptions(context [, {max_tokens, stop = {text...}, stop_ids = {id...}, default_stops,
     * log_probabilities}]) */
    perigee_generation_options(lua_State *L, perigee_context *needed, lua_slot options = 2) {
        perigee_generation_options *o = NULL;
        perigee_error *e = NULL;
        perigee_status st = perigee_generation_options_new(needed, &o, &e);
        if (!st && !lua_isnoneornil(L, options)) {
            st = set_generation_options(L, options, o, &e);
        }
        if (st) {
            perigee_generation_options_free(o);
            raise_status(L, st, e);
        }
        return o;
    }
    ~perigee_generation_options() { perigee_generation_options_free($self); }
    void l_sampler(lua_State *L, perigee_sampler *sampler = NULL) {
        perigee_error *e = NULL;
        perigee_status st = perigee_generation_options_set_sampler($self, sampler, &e);
        if (st) raise_status(L, st, e);
    }
    void l_constraint(lua_State *L, perigee_constraint *constraint = NULL) {
        perigee_error *e = NULL;
        perigee_status st = perigee_generation_options_set_constraint($self, constraint, &e);
        if (st) raise_status(L, st, e);
    }
    void l_cancel(lua_State *L, perigee_cancel *cancel = NULL) {
        perigee_error *e = NULL;
        perigee_status st = perigee_generation_options_set_cancel($self, cancel, &e);
        if (st) raise_status(L, st, e);
    }
}
%native(decode_batch) int native_decode_batch(lua_State *L);
%native(argmax) int native_argmax(lua_State *L);
%native(log_probabilities) int native_log_probabilities(lua_State *L);
%native(options) int native_options(lua_State *L);

%extend perigee_session {
    /* for step in session:generate(ids [, options]) do: id, text, finish, log_probability, top, seconds, tokens */
    lua_results l_generate(lua_State *L, lua_slot prompt, perigee_generation_options *options = NULL) {
        return start_generation(L, $self, prompt, options);
    }
    /* sampler(): a copy of the one of the session's generation, behind the tokens so far */
    lua_results l_sampler(lua_State *L) {
        perigee_generation *g = running_generation(L, 1);
        perigee_sampler *s = NULL;
        perigee_error *e = NULL;
        perigee_status st;
        (void)$self;
        if (!g) return luaL_error(L, "the session has no generation");
        st = perigee_generation_sampler(g, &s, &e);
        if (st) return raise_status(L, st, e);
        SWIG_NewPointerObj(L, s, SWIGTYPE_p_perigee_sampler, 1);
        return 1;
    }
    lua_results l_score(lua_State *L, lua_slot ids, perigee_cancel *cancel = NULL) {
        size_t n, i;
        const int32_t *v = to_tokens(L, ids, &n);
        double *out = (double *)lua_newuserdatauv(L, (n + 1) * sizeof *out, 0);
        perigee_error *e = NULL;
        perigee_status st = perigee_score($self, v, n, out, cancel, &e);
        if (st) return raise_status(L, st, e);
        lua_createtable(L, (int)n, 0);
        for (i = 0; i + 1 < n; i++) {
            lua_pushnumber(L, out[i]);
            lua_rawseti(L, -2, (lua_Integer)i + 1);
        }
        return 1;
    }
    /* feed(ids [, cancel]): logits of the last, and how many ids were kept */
    lua_results l_feed(lua_State *L, lua_slot ids, perigee_cancel *cancel = NULL) {
        size_t n, rows = 0, kept = 0;
        const int32_t *v = to_tokens(L, ids, &n);
        const float *logits = NULL;
        perigee_error *e = NULL;
        perigee_status st = perigee_session_feed($self, v, n, PERIGEE_LOGITS_LAST, &logits, &rows, &kept, cancel, &e);
        if (st) return raise_status(L, st, e);
        push_logits(L, logits, perigee_session_vocabulary($self));
        lua_pushinteger(L, (lua_Integer)kept);
        return 2;
    }
}

%extend perigee_context {
    /* top_k(logits, k): ids and values, greatest first */
    lua_results l_top_k(lua_State *L, lua_slot logits, lua_slot k) {
        size_t n, i, count = (size_t)luaL_checkinteger(L, k);
        const float *values = to_logits(L, logits, &n);
        int32_t *ids;
        float *top;
        perigee_error *e = NULL;
        perigee_status st;
        if (count > n) return luaL_error(L, "k is more than there are logits");
        ids = (int32_t *)lua_newuserdatauv(L, (count + 1) * sizeof *ids, 0);
        top = (float *)lua_newuserdatauv(L, (count + 1) * sizeof *top, 0);
        st = perigee_top_k($self, values, n, count, ids, top, &e);
        if (st) return raise_status(L, st, e);
        push_tokens(L, ids, count);
        lua_createtable(L, (int)count, 0);
        for (i = 0; i < count; i++) {
            lua_pushnumber(L, top[i]);
            lua_rawseti(L, -2, (lua_Integer)i + 1);
        }
        return 2;
    }
    lua_results l_plan(lua_State *L, lua_slot path, lua_slot options = 3) {
        size_t length;
        const char *p = luaL_checklstring(L, path, &length);
        const perigee_options *o = to_options(L, options);
        perigee_plan i;
        perigee_error *e = NULL;
        perigee_status st;
        i.struct_size = sizeof i;
        st = perigee_model_plan($self, p, length, o, &i, &e);
        if (st) return raise_status(L, st, e);
        lua_newtable(L);
        set_number(L, "disk_bytes", i.disk_bytes);
        set_number(L, "resident_bytes", i.resident_bytes);
        set_number(L, "relaid_bytes", i.relaid_bytes);
        set_number(L, "table_bytes", i.table_bytes);
        set_number(L, "token_bytes", i.token_bytes);
        set_number(L, "session_fixed_bytes", i.session_fixed_bytes);
        set_number(L, "session_token_bytes", i.session_token_bytes);
        set_number(L, "cache_block_tokens", i.cache_block_tokens);
        set_number(L, "scratch_bytes", i.scratch_bytes);
        set_number(L, "chunk", i.chunk);
        set_number(L, "context", i.context);
        set_number(L, "available_bytes", i.available_bytes);
        lua_pushboolean(L, i.mapped);
        lua_setfield(L, -2, "mapped");
        lua_pushboolean(L, i.fits);
        lua_setfield(L, -2, "fits");
        return 1;
    }
    /* describe(path): totals, with the components in order */
    lua_results l_describe(lua_State *L, lua_slot path) {
        size_t length;
        const char *p = luaL_checklstring(L, path, &length);
        perigee_description *d = NULL;
        perigee_error *e = NULL;
        perigee_status st = perigee_model_describe($self, p, length, &d, &e);
        if (!st) st = push_description(L, d, &e);
        perigee_description_free(d);
        return st ? raise_status(L, st, e) : 1;
    }
}

%newobject perigee_queue::perigee_queue;
%extend perigee_queue {
    perigee_queue(lua_State *L, perigee_model *needed, unsigned long active, lua_slot options = 3) {
        perigee_queue *q = NULL;
        perigee_error *e = NULL;
        const perigee_options *o = to_options(L, options);
        perigee_status st = perigee_queue_new(needed, o, active, &q, &e);
        if (st) raise_status(L, st, e);
        return q;
    }
    ~perigee_queue() { perigee_queue_free($self); }
    /* submit(ids, options or nil, f): f(request, step, error) may return false to end it; gives the request's number */
    lua_results l_submit(lua_State *L, lua_slot prompt, perigee_generation_options *options, lua_slot f) {
        size_t n;
        const int32_t *ids = to_tokens(L, prompt, &n);
        callback *c = make_callback(L, f);
        int64_t request = 0;
        perigee_error *e = NULL;
        perigee_status st =
            perigee_queue_submit($self, ids, n, options, on_queue_step, c, free_callback, &request, &e);
        if (st) return raise_status(L, st, e);
        lua_pushinteger(L, (lua_Integer)request);
        return 1;
    }
    void l_cancel(lua_State *L, lua_slot request) {
        perigee_error *e = NULL;
        perigee_status st = perigee_queue_cancel($self, luaL_checkinteger(L, request), &e);
        if (st) raise_status(L, st, e);
    }
    void l_step_seconds(lua_State *L, double seconds) {
        perigee_error *e = NULL;
        perigee_status st = perigee_queue_set_step_seconds($self, seconds, &e);
        if (st) raise_status(L, st, e);
    }
    /* one pass: the number of requests that are not at their end */
    lua_results l_step(lua_State *L) {
        size_t left = 0;
        perigee_error *e = NULL;
        perigee_status st = perigee_queue_step($self, &left, &e);
        raise_pending(L, e);
        if (st) return raise_status(L, st, e);
        lua_pushinteger(L, (lua_Integer)left);
        return 1;
    }
}

%newobject perigee_prefix_cache::perigee_prefix_cache;
%extend perigee_prefix_cache {
    perigee_prefix_cache(lua_State *L, perigee_model *needed, lua_slot bytes) {
        perigee_prefix_cache *c = NULL;
        perigee_error *e = NULL;
        perigee_status st = perigee_prefix_cache_new(needed, luaL_checkinteger(L, bytes), &c, &e);
        if (st) raise_status(L, st, e);
        return c;
    }
    ~perigee_prefix_cache() { perigee_prefix_cache_free($self); }
    void l_put(lua_State *L, perigee_session *needed) {
        perigee_error *e = NULL;
        perigee_status st = perigee_prefix_cache_put($self, needed, &e);
        if (st) raise_status(L, st, e);
    }
    lua_results l_get(lua_State *L, lua_slot ids, lua_slot options = 3) {
        size_t n;
        const int32_t *v = to_tokens(L, ids, &n);
        const perigee_options *o = to_options(L, options);
        perigee_session *s = NULL;
        perigee_error *e = NULL;
        perigee_status st = perigee_prefix_cache_get($self, v, n, o, &s, &e);
        if (st) return raise_status(L, st, e);
        SWIG_NewPointerObj(L, s, SWIGTYPE_p_perigee_session, 1);
        return 1;
    }
    lua_results l_bytes(lua_State *L) { lua_pushinteger(L, (lua_Integer)perigee_prefix_cache_bytes($self)); return 1; }
}
