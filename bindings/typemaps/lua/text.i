/* Lua: tokenizer, decoder, chat, parser. */

%newobject perigee_tokenizer::perigee_tokenizer;
%extend perigee_tokenizer {
    perigee_tokenizer(lua_State *L, perigee_context *needed, lua_slot path) {
        perigee_tokenizer *t = NULL;
        perigee_error *e = NULL;
        size_t length;
        const char *p = luaL_checklstring(L, path, &length);
        perigee_status st = perigee_tokenizer_open(needed, p, length, &t, &e);
        if (st) raise_status(L, st, e);
        return t;
    }
    ~perigee_tokenizer() { perigee_tokenizer_free($self); }
    lua_results l_info(lua_State *L) {
        perigee_tokenizer_info i;
        perigee_error *e = NULL;
        perigee_status st;
        i.struct_size = sizeof i;
        st = perigee_tokenizer_get_info($self, &i, &e);
        if (st) return raise_status(L, st, e);
        lua_newtable(L);
        set_text(L, "family", i.family);
        set_text(L, "format", i.format);
        set_number(L, "base", i.base);
        set_number(L, "vocabulary", i.vocabulary);
        push_tokens(L, i.end_ids, i.end_count);
        lua_setfield(L, -2, "end_ids");
        return 1;
    }
    lua_results l_encode(lua_State *L, lua_slot text) { return encode_with(L, $self, perigee_encode_text, text); }
    lua_results l_encode_markup(lua_State *L, lua_slot text) { return encode_with(L, $self, perigee_encode_markup, text); }
    lua_results l_decode(lua_State *L, lua_slot ids, lua_slot skip_special = 3) {
        size_t n, length = 0;
        const int32_t *v = to_tokens(L, ids, &n);
        uint32_t flags = lua_toboolean(L, skip_special) ? PERIGEE_DECODE_SKIP_SPECIAL : 0;
        perigee_error *e = NULL;
        char *bytes;
        perigee_status st = perigee_decode($self, v, n, flags, NULL, 0, &length, &e);
        if (st) return raise_status(L, st, e);
        bytes = (char *)lua_newuserdatauv(L, length + 1, 0);
        st = length ? perigee_decode($self, v, n, flags, bytes, length, &length, &e) : PERIGEE_OK;
        if (st) return raise_status(L, st, e);
        lua_pushlstring(L, bytes, length);
        return 1;
    }
    lua_results l_token_bytes(lua_State *L, int32_t id) {
        const char *bytes = NULL;
        size_t length = 0;
        int32_t special = 0;
        perigee_error *e = NULL;
        perigee_status st = perigee_token_bytes($self, id, &bytes, &length, &special, &e);
        if (st) return raise_status(L, st, e);
        lua_pushlstring(L, bytes, length);
        lua_pushboolean(L, special);
        return 2;
    }
    lua_results l_token_id(lua_State *L, lua_slot name) {
        int32_t id = 0;
        size_t length;
        const char *n = luaL_checklstring(L, name, &length);
        perigee_error *e = NULL;
        perigee_status st = perigee_token_id($self, n, length, &id, &e);
        if (st) return raise_status(L, st, e);
        lua_pushinteger(L, id);
        return 1;
    }
}
%extend perigee_model {
    /* nil if the checkpoint has none */
    lua_results l_tokenizer(lua_State *L) {
        const perigee_tokenizer *t = perigee_model_tokenizer($self);
        if (!t) {
            lua_pushnil(L);
            return 1;
        }
        lua_pushboolean(L, 1);
        lua_setiuservalue(L, 1, 1); /* it is lent: see close_object() */
        SWIG_NewPointerObj(L, (void *)t, SWIGTYPE_p_perigee_tokenizer, 0);
        keep(L, 1);
        return 1;
    }
}

%newobject perigee_decoder::perigee_decoder;
%extend perigee_decoder {
    perigee_decoder(lua_State *L, perigee_tokenizer *needed, lua_slot skip_special = 2) {
        perigee_decoder *d = NULL;
        perigee_error *e = NULL;
        uint32_t flags = lua_toboolean(L, skip_special) ? PERIGEE_DECODE_SKIP_SPECIAL : 0;
        perigee_status st = perigee_decoder_new(needed, flags, &d, &e);
        if (st) raise_status(L, st, e);
        return d;
    }
    ~perigee_decoder() { perigee_decoder_free($self); }
    lua_results l_push(lua_State *L, int32_t id) {
        const char *text = NULL;
        size_t length = 0;
        perigee_error *e = NULL;
        perigee_status st = perigee_decoder_push($self, id, &text, &length, &e);
        if (st) return raise_status(L, st, e);
        lua_pushlstring(L, text, length);
        return 1;
    }
    lua_results l_flush(lua_State *L) {
        const char *text = NULL;
        size_t length = 0;
        perigee_error *e = NULL;
        perigee_status st = perigee_decoder_flush($self, &text, &length, &e);
        if (st) return raise_status(L, st, e);
        lua_pushlstring(L, text, length);
        return 1;
    }
}

%newobject perigee_chat::perigee_chat;
%extend perigee_chat {
    /* Chat(tokenizer, messages [, tools [, options]]): JSON texts; options: thinking (true, false), format, effort,
     * tool_choice, response_format, omit_generation_prompt */
    perigee_chat(lua_State *L, perigee_tokenizer *needed, lua_slot messages, lua_slot tools = 3, lua_slot options = 4) {
        perigee_chat *c = NULL;
        perigee_error *e = NULL;
        perigee_chat_options o;
        size_t m_length, t_length = 0;
        const char *m = luaL_checklstring(L, messages, &m_length);
        const char *t = lua_isnoneornil(L, tools) ? NULL : luaL_checklstring(L, tools, &t_length);
        perigee_status st;
        memset(&o, 0, sizeof o);
        o.struct_size = sizeof o;
        if (!lua_isnoneornil(L, options)) {
            luaL_checktype(L, options, LUA_TTABLE);
            if (lua_getfield(L, options, "thinking") != LUA_TNIL) {
                o.thinking = lua_toboolean(L, -1) ? PERIGEE_THINKING_ON : PERIGEE_THINKING_OFF;
            }
            lua_getfield(L, options, "omit_generation_prompt");
            o.omit_generation_prompt = lua_toboolean(L, -1);
            lua_pop(L, 2);
            o.format = text_field(L, options, "format", &o.format_length);
            o.effort = text_field(L, options, "effort", &o.effort_length);
            o.tool_choice = text_field(L, options, "tool_choice", &o.tool_choice_length);
            o.response_format = text_field(L, options, "response_format", &o.response_format_length);
        }
        st = perigee_chat_render(needed, m, m_length, t, t_length, &o, &c, &e);
        if (st) raise_status(L, st, e);
        return c;
    }
    ~perigee_chat() { perigee_chat_free($self); }
    lua_results l_ids(lua_State *L) {
        size_t n = 0;
        const int32_t *ids = perigee_chat_ids($self, &n);
        return push_tokens(L, ids, n);
    }
    lua_results l_text(lua_State *L) {
        size_t n = 0;
        const char *text = perigee_chat_text($self, &n);
        lua_pushlstring(L, text, n);
        return 1;
    }
    lua_results l_segments(lua_State *L) {
        size_t i, n = perigee_chat_segment_count($self);
        lua_createtable(L, (int)n, 0);
        for (i = 0; i < n; i++) {
            perigee_chat_segment s;
            perigee_error *e = NULL;
            perigee_status st;
            s.struct_size = sizeof s;
            st = perigee_chat_get_segment($self, i, &s, &e);
            if (st) return raise_status(L, st, e);
            lua_newtable(L);
            lua_pushlstring(L, s.text, s.length);
            lua_setfield(L, -2, "text");
            lua_pushboolean(L, s.control);
            lua_setfield(L, -2, "control");
            set_number(L, "first", (int64_t)s.first + 1);
            set_number(L, "count", (int64_t)s.count);
            lua_rawseti(L, -2, (lua_Integer)i + 1);
        }
        return 1;
    }
}

%newobject perigee_parser::perigee_parser;
%extend perigee_parser {
    perigee_parser(lua_State *L, perigee_tokenizer *needed, perigee_chat *chat = NULL) {
        perigee_parser *p = NULL;
        perigee_error *e = NULL;
        perigee_status st = perigee_parser_new(needed, chat, &p, &e);
        if (st) raise_status(L, st, e);
        return p;
    }
    ~perigee_parser() { perigee_parser_free($self); }
    lua_results l_push(lua_State *L, int32_t id) {
        size_t count = 0;
        perigee_error *e = NULL;
        perigee_status st = perigee_parser_push($self, id, &count, &e);
        return st ? raise_status(L, st, e) : push_deltas(L, $self, count);
    }
    lua_results l_finish(lua_State *L) {
        size_t count = 0;
        perigee_error *e = NULL;
        perigee_status st = perigee_parser_finish($self, &count, &e);
        return st ? raise_status(L, st, e) : push_deltas(L, $self, count);
    }
    lua_results l_ended(lua_State *L) { lua_pushboolean(L, perigee_parser_ended($self)); return 1; }
    lua_results l_message(lua_State *L) {
        const char *json = NULL;
        size_t length = 0;
        perigee_error *e = NULL;
        perigee_status st = perigee_parser_message($self, &json, &length, &e);
        if (st) return raise_status(L, st, e);
        lua_pushlstring(L, json, length);
        return 1;
    }
}
