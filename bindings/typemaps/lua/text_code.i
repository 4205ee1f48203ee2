/* Lua: C code of text.i. */
%{
/* Keeps the object at `owner` alive as long as the one on top of the stack. */
static void keep(lua_State *L, int owner) {
    lua_pushvalue(L, owner);
    lua_setiuservalue(L, -2, 1);
}

typedef perigee_status (*encode_fn)(const perigee_tokenizer *, const char *, size_t, uint32_t, int32_t *, size_t,
                                    size_t *, perigee_error **);

static int encode_with(lua_State *L, const perigee_tokenizer *tokenizer, encode_fn encode, int text) {
    size_t length, count = 0;
    const char *t = luaL_checklstring(L, text, &length);
    /* never more ids than bytes, so that one call does */
    int32_t *ids = (int32_t *)lua_newuserdatauv(L, (length ? length : 1) * sizeof *ids, 0);
    perigee_error *e = NULL;
    perigee_status st = encode(tokenizer, t, length, 0, ids, length, &count, &e);
    if (st) {
        return raise_status(L, st, e);
    }
    return push_tokens(L, ids, count);
}

/* Text of a key of the table at `index`, or NULL; the string stays in the table. */
static const char *text_field(lua_State *L, int index, const char *key, size_t *length) {
    const char *text = NULL;
    *length = 0;
    if (lua_getfield(L, index, key) != LUA_TNIL) {
        text = luaL_checklstring(L, -1, length);
    }
    lua_pop(L, 1);
    return text;
}

static int push_deltas(lua_State *L, const perigee_parser *parser, size_t count) {
    static const char *const kinds[] = {"", "thinking", "content", "call", "arguments", "call_end", "end"};
    size_t i;
    lua_createtable(L, (int)count, 0);
    for (i = 0; i < count; i++) {
        perigee_delta d;
        perigee_error *e = NULL;
        perigee_status st;
        d.struct_size = sizeof d;
        st = perigee_parser_get_delta(parser, i, &d, &e);
        if (st) {
            return raise_status(L, st, e);
        }
        lua_newtable(L);
        set_text(L, "kind", (unsigned)d.kind < sizeof kinds / sizeof *kinds ? kinds[d.kind] : "");
        lua_pushlstring(L, d.text, d.length);
        lua_setfield(L, -2, "text");
        if (d.kind == PERIGEE_DELTA_CALL || d.kind == PERIGEE_DELTA_ARGUMENTS || d.kind == PERIGEE_DELTA_CALL_END) {
            set_number(L, "call", (int64_t)d.call);
        }
        if (d.kind == PERIGEE_DELTA_CALL) {
            set_text(L, "name", d.name);
            set_text(L, "id", d.id);
        }
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    return 1;
}
%}
