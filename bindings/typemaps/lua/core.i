%newobject perigee_context::perigee_context;
%extend perigee_context {
    perigee_context(lua_State *L, lua_slot options = 1, lua_slot log = 2, perigee_kernel_set *kernels = NULL) {
        perigee_context *c = NULL;
        perigee_error *e = NULL;
        const perigee_options *o = to_options(L, options);
        perigee_log sink;
        int logged = !lua_isnoneornil(L, log);
        perigee_status st;
        sink.struct_size = sizeof sink;
        sink.write = write_log;
        sink.release = free_callback;
        sink.user = logged ? make_callback(L, log) : NULL;
        st = perigee_context_new(o, NULL, logged ? &sink : NULL, kernels, &c, &e);
        if (st) raise_status(L, st, e);
        return c;
    }
    ~perigee_context() { perigee_context_free($self); }
    lua_results l_threads(lua_State *L) { lua_pushinteger(L, (lua_Integer)perigee_context_threads($self)); return 1; }
    lua_results l_kernels(lua_State *L) {
        size_t i, n = perigee_context_kernel_count($self);
        lua_createtable(L, (int)n, 0);
        for (i = 0; i < n; i++) {
            perigee_error *e = NULL;
            perigee_kernel_info k;
            perigee_status st;
            k.struct_size = sizeof k;
            st = perigee_context_kernel($self, i, &k, &e);
            if (st) return raise_status(L, st, e);
            lua_newtable(L);
            set_text(L, "name", k.name);
            set_text(L, "op", k.op);
            set_text(L, "weight", k.weight);
            set_text(L, "isa", k.isa);
            set_text(L, "origin", k.origin);
            set_text(L, "numerics", k.numerics);
            set_text(L, "precision", k.precision);
            lua_pushnumber(L, k.error_bound);
            lua_setfield(L, -2, "error_bound");
            lua_pushboolean(L, k.deterministic);
            lua_setfield(L, -2, "deterministic");
            lua_pushboolean(L, k.in_use);
            lua_setfield(L, -2, "in_use");
            lua_rawseti(L, -2, (int)i + 1);
        }
        return 1;
    }
    /* calls of kernels so far, with the option trace_kernels */
    lua_results l_kernel_trace(lua_State *L) {
        size_t i, n = perigee_context_trace_count($self);
        lua_createtable(L, (int)n, 0);
        for (i = 0; i < n; i++) {
            perigee_error *e = NULL;
            perigee_kernel_trace t;
            perigee_status st;
            t.struct_size = sizeof t;
            st = perigee_context_trace($self, i, &t, &e);
            if (st) return raise_status(L, st, e);
            lua_newtable(L);
            set_text(L, "kernel", t.kernel);
            set_text(L, "function", t.function);
            set_text(L, "op", t.op);
            set_number(L, "rows", (int64_t)t.rows);
            set_number(L, "cols", (int64_t)t.cols);
            set_number(L, "tokens", (int64_t)t.tokens);
            set_number(L, "calls", t.calls);
            lua_pushnumber(L, t.seconds);
            lua_setfield(L, -2, "seconds");
            lua_rawseti(L, -2, (int)i + 1);
        }
        return 1;
    }
    /* what the comparison with scalar kernels came to, with the option check_kernels; kernel is nil without a difference */
    lua_results l_kernel_check(lua_State *L) {
        perigee_error *e = NULL;
        perigee_kernel_check c;
        perigee_status st;
        c.struct_size = sizeof c;
        st = perigee_context_check($self, &c, &e);
        if (st) return raise_status(L, st, e);
        lua_newtable(L);
        set_number(L, "calls", c.calls);
        set_number(L, "skipped", c.skipped);
        set_number(L, "different", c.different);
        set_real(L, "largest", c.largest);
        if (c.kernel) {
            set_text(L, "kernel", c.kernel);
            set_text(L, "reference", c.reference);
            set_text(L, "op", c.op);
            set_text(L, "function", c.function);
            set_text(L, "output", c.output);
            set_number(L, "rows", (int64_t)c.rows);
            set_number(L, "cols", (int64_t)c.cols);
            set_number(L, "tokens", (int64_t)c.tokens);
            set_number(L, "index", (int64_t)c.index);
            set_number(L, "width", (int64_t)c.width);
            set_real(L, "value", c.value);
            set_real(L, "expected", c.expected);
            set_real(L, "allowed", c.allowed);
        }
        return 1;
    }
    /* time_kernel(index, tokens): row `index` of kernels(), from 1 */
    lua_results l_time_kernel(lua_State *L, long index, long tokens) {
        perigee_error *e = NULL;
        perigee_kernel_timing t;
        perigee_status st;
        t.struct_size = sizeof t;
        st = perigee_context_time_kernel($self, (size_t)index - 1, tokens > 0 ? (size_t)tokens : 0, &t, &e);
        if (st) return raise_status(L, st, e);
        lua_newtable(L);
        set_number(L, "rows", (int64_t)t.rows);
        set_number(L, "cols", (int64_t)t.cols);
        set_number(L, "tokens", (int64_t)t.tokens);
        set_real(L, "seconds", t.seconds);
        set_number(L, "bytes", t.bytes);
        set_number(L, "multiply_adds", t.multiply_adds);
        return 1;
    }
}

%newobject perigee_cancel::perigee_cancel;
%extend perigee_cancel {
    perigee_cancel(lua_State *L) {
        perigee_cancel *c = NULL;
        perigee_error *e = NULL;
        perigee_status st = perigee_cancel_new(&c, &e);
        if (st) raise_status(L, st, e);
        return c;
    }
    ~perigee_cancel() { perigee_cancel_free($self); }
    void l_trigger() { perigee_cancel_trigger($self); }
    void l_reset() { perigee_cancel_reset($self); }
    lua_results l_triggered(lua_State *L) { lua_pushboolean(L, perigee_cancel_triggered($self)); return 1; }
}

%newobject perigee_model::perigee_model;
%extend perigee_model {
    perigee_model(lua_State *L, perigee_context *needed, lua_slot path, lua_slot options = 3, lua_slot on_progress = 4,
                  perigee_cancel *cancel = NULL) {
        perigee_model *m = NULL;
        perigee_error *e = NULL;
        size_t length;
        const char *p = luaL_checklstring(L, path, &length);
        const perigee_options *o = to_options(L, options);
        progress_state state;
        perigee_status st;
        state.L = L;
        state.function = lua_isnoneornil(L, on_progress) ? 0 : on_progress;
        state.failed = 0;
        if (state.function) luaL_checktype(L, on_progress, LUA_TFUNCTION);
        st = perigee_model_load(needed, p, length, o, on_load_progress, &state, cancel, &m, &e);
        if (state.failed) {
            perigee_error_free(e);
            lua_error(L);
        }
        if (st) raise_status(L, st, e);
        return m;
    }
    ~perigee_model() { perigee_model_free($self); }
    lua_results l_info(lua_State *L) {
        perigee_error *e = NULL;
        perigee_model_info i;
        perigee_status st;
        i.struct_size = sizeof i;
        st = perigee_model_get_info($self, &i, &e);
        if (st) return raise_status(L, st, e);
        lua_newtable(L);
        set_text(L, "family", i.family);
        set_number(L, "vocabulary", i.vocabulary);
        set_number(L, "hidden", i.hidden);
        set_number(L, "layers", i.layers);
        set_number(L, "kda_layers", i.kda_layers);
        set_number(L, "context", i.context);
        set_number(L, "bos", i.bos);
        set_number(L, "weight_bytes", i.weight_bytes);
        set_number(L, "resident_bytes", i.resident_bytes);
        set_number(L, "token_bytes", i.token_bytes);
        push_tokens(L, i.end_ids, i.end_count);
        lua_setfield(L, -2, "end_ids");
        return 1;
    }
}

%newobject perigee_session::perigee_session;
%extend perigee_session {
    perigee_session(lua_State *L, perigee_model *needed, lua_slot options = 2) {
        perigee_session *s = NULL;
        perigee_error *e = NULL;
        const perigee_options *o = to_options(L, options);
        perigee_status st = perigee_session_new(needed, o, &s, &e);
        if (st) raise_status(L, st, e);
        return s;
    }
    ~perigee_session() { perigee_session_free($self); }
    lua_results l_position(lua_State *L) { lua_pushinteger(L, (lua_Integer)perigee_session_position($self)); return 1; }
    lua_results l_context(lua_State *L) { lua_pushinteger(L, (lua_Integer)perigee_session_context($self)); return 1; }
    void l_reset() { perigee_session_reset($self); }
    /* decode(tokens [, "none" | "last" | "all" [, cancel]]): a table of rows of logits for "all", of logits for "last" */
    lua_results l_decode(lua_State *L, lua_slot tokens, lua_slot which = 3, perigee_cancel *cancel = NULL) {
        return decode_tokens(L, $self, tokens, which, cancel);
    }
    lua_results l_tokens(lua_State *L) {
        const int32_t *ids = NULL;
        size_t n = perigee_session_tokens($self, &ids);
        return push_tokens(L, ids, n);
    }
    lua_results l_fork(lua_State *L) {
        perigee_session *s = NULL;
        perigee_error *e = NULL;
        perigee_status st = perigee_session_fork($self, &s, &e);
        if (st) return raise_status(L, st, e);
        SWIG_NewPointerObj(L, s, SWIGTYPE_p_perigee_session, 1);
        return 1;
    }
    void l_rewind(lua_State *L, long position, perigee_cancel *cancel = NULL) {
        perigee_error *e = NULL;
        perigee_status st = perigee_session_rewind($self, position, NULL, cancel, &e);
        if (st) raise_status(L, st, e);
    }
    lua_results l_save(lua_State *L, perigee_sampler *sampler = NULL) {
        perigee_error *e = NULL;
        size_t size = 0;
        char *data;
        perigee_status st = perigee_state_size($self, sampler, &size, &e);
        if (st) return raise_status(L, st, e);
        data = (char *)lua_newuserdata(L, size ? size : 1);
        st = perigee_state_save($self, sampler, data, size, &size, &e);
        if (st) return raise_status(L, st, e);
        lua_pushlstring(L, data, size);
        return 1;
    }
    void l_load(lua_State *L, lua_slot state, perigee_sampler *sampler = NULL) {
        perigee_error *e = NULL;
        size_t size;
        const char *data = luaL_checklstring(L, state, &size);
        perigee_status st = perigee_state_load($self, sampler, data, size, &e);
        if (st) raise_status(L, st, e);
    }
    void l_save_file(lua_State *L, lua_slot path, perigee_sampler *sampler = NULL) {
        perigee_error *e = NULL;
        size_t length;
        const char *p = luaL_checklstring(L, path, &length);
        perigee_status st = perigee_state_save_file($self, sampler, p, length, &e);
        if (st) raise_status(L, st, e);
    }
    void l_load_file(lua_State *L, lua_slot path, perigee_sampler *sampler = NULL) {
        perigee_error *e = NULL;
        size_t length;
        const char *p = luaL_checklstring(L, path, &length);
        perigee_status st = perigee_state_load_file($self, sampler, p, length, &e);
        if (st) raise_status(L, st, e);
    }
    lua_results l_statistics(lua_State *L) {
        perigee_error *e = NULL;
        perigee_statistics i;
        perigee_status st;
        i.struct_size = sizeof i;
        st = perigee_session_statistics($self, &i, &e);
        if (st) return raise_status(L, st, e);
        lua_newtable(L);
        set_number(L, "tokens", i.tokens);
        set_number(L, "steps", i.steps);
        set_number(L, "weight_bytes", i.weight_bytes);
        set_number(L, "expert_reads", i.expert_reads);
        set_number(L, "cache_hits", i.cache_hits);
        set_number(L, "memory_bytes", i.memory_bytes);
        lua_pushnumber(L, i.seconds);
        lua_setfield(L, -2, "seconds");
        return 1;
    }
}
