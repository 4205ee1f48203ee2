/* Lua: C code of generate.i. */
%{
/* Methods that add a stage give the sampler itself, so that they can be written in a chain. */
static int chain(lua_State *L) {
    lua_pushvalue(L, 1);
    return 1;
}
%}
%{
/* Numbers, booleans and strings only, so that nothing in here raises an error of Lua's. */
static perigee_status set_generation_options(lua_State *L, int table, perigee_generation_options *o, perigee_error **e) {
    perigee_status st = PERIGEE_OK;
    lua_Integer i, n;
    if (!lua_istable(L, table)) {
        return PERIGEE_E_ARGUMENT;
    }
    if (lua_getfield(L, table, "max_tokens") != LUA_TNIL) {
        st = perigee_generation_options_set_max_tokens(o, lua_tointeger(L, -1), e);
    }
    if (lua_getfield(L, table, "default_stops") != LUA_TNIL && !st) {
        st = perigee_generation_options_set_default_stops(o, lua_toboolean(L, -1), e);
    }
    if (lua_getfield(L, table, "log_probabilities") != LUA_TNIL && !st) {
        st = perigee_generation_options_set_log_probabilities(o, (int32_t)lua_tointeger(L, -1), e);
    }
    if (lua_getfield(L, table, "stop_ids") == LUA_TTABLE) {
        for (i = 1, n = (lua_Integer)lua_rawlen(L, -1); i <= n && !st; i++) {
            lua_rawgeti(L, -1, i);
            st = perigee_generation_options_add_stop_id(o, (int32_t)lua_tointeger(L, -1), e);
            lua_pop(L, 1);
        }
    }
    if (lua_getfield(L, table, "stop") == LUA_TTABLE) {
        for (i = 1, n = (lua_Integer)lua_rawlen(L, -1); i <= n && !st; i++) {
            size_t length = 0;
            const char *text;
            lua_rawgeti(L, -1, i);
            text = lua_type(L, -1) == LUA_TSTRING ? lua_tolstring(L, -1, &length) : NULL;
            st = text ? perigee_generation_options_add_stop_string(o, text, length, e) : PERIGEE_E_ARGUMENT;
            lua_pop(L, 1);
        }
    }
    lua_pop(L, 5);
    return st;
}

static perigee_session *session_at(lua_State *L, int index) {
    void *p = NULL;
    if (SWIG_ConvertPtr(L, index, &p, SWIGTYPE_p_perigee_session, 0) < 0 || !p) {
        luaL_error(L, "a Session is expected");
    }
    return (perigee_session *)p;
}

/* decode_batch({{session, ids}, ...} [, cancel]): for each, logits or nil and an error */
static int native_decode_batch(lua_State *L) {
    size_t n, i;
    perigee_batch_item *items;
    perigee_error *e = NULL;
    perigee_status st;
    void *cancel = NULL;
    luaL_checktype(L, 1, LUA_TTABLE);
    if (!lua_isnoneornil(L, 2) && SWIG_ConvertPtr(L, 2, &cancel, SWIGTYPE_p_perigee_cancel, 0) < 0) {
        return luaL_error(L, "a Cancel is expected");
    }
    lua_settop(L, 2);
    n = lua_rawlen(L, 1);
    items = (perigee_batch_item *)lua_newuserdatauv(L, (n + 1) * sizeof *items, 0);
    lua_createtable(L, (int)n, 0); /* 4: keeps the ids */
    for (i = 0; i < n; i++) {
        memset(&items[i], 0, sizeof items[i]);
        items[i].struct_size = sizeof items[i];
        items[i].which = PERIGEE_LOGITS_LAST;
        lua_rawgeti(L, 1, (lua_Integer)i + 1);
        luaL_checktype(L, 5, LUA_TTABLE);
        lua_rawgeti(L, 5, 1);
        items[i].session = session_at(L, 6);
        lua_rawgeti(L, 5, 2);
        items[i].tokens = to_tokens(L, 7, &items[i].n);
        lua_rawseti(L, 4, (lua_Integer)i + 1);
        lua_settop(L, 4);
    }
    st = perigee_decode_batch(items, n, (perigee_cancel *)cancel, &e);
    lua_createtable(L, (int)n, 0);
    for (i = 0; i < n; i++) {
        lua_newtable(L);
        if (items[i].status == PERIGEE_OK && items[i].logits) {
            push_logits(L, items[i].logits, perigee_session_vocabulary(items[i].session));
            lua_setfield(L, -2, "logits");
        } else if (items[i].status != PERIGEE_OK) {
            push_error(L, items[i].status, items[i].error);
            lua_setfield(L, -2, "error");
        } else { /* nothing was done: the call as a whole is wrong */
            return raise_status(L, st, e);
        }
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    perigee_error_free(e);
    return 1;
}

static int native_argmax(lua_State *L) {
    size_t n;
    int32_t id = 0;
    perigee_error *e = NULL;
    perigee_status st;
    const float *values = to_logits(L, 1, &n);
    st = perigee_argmax(values, n, &id, &e);
    if (st) return raise_status(L, st, e);
    lua_pushinteger(L, id);
    return 1;
}

static int native_log_probabilities(lua_State *L) {
    size_t n, k, i;
    const float *values = to_logits(L, 1, &n);
    const int32_t *ids = to_tokens(L, 2, &k);
    double *out = (double *)lua_newuserdatauv(L, (k + 1) * sizeof *out, 0);
    perigee_error *e = NULL;
    perigee_status st = perigee_log_probabilities(values, n, ids, k, out, &e);
    if (st) return raise_status(L, st, e);
    lua_createtable(L, (int)k, 0);
    for (i = 0; i < k; i++) {
        lua_pushnumber(L, out[i]);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    return 1;
}

static int native_options(lua_State *L) {
    size_t i, n = perigee_option_count();
    lua_createtable(L, (int)n, 0);
    for (i = 0; i < n; i++) {
        static const char *const scopes[] = {"context", "model", "session"};
        perigee_option_description d;
        perigee_error *e = NULL;
        perigee_status st;
        d.struct_size = sizeof d;
        st = perigee_option_describe(i, &d, &e);
        if (st) return raise_status(L, st, e);
        lua_newtable(L);
        set_text(L, "name", d.name);
        set_text(L, "help", d.help);
        set_text(L, "default", d.default_text);
        set_text(L, "scope", (unsigned)d.scope < 3 ? scopes[d.scope] : "");
        lua_pushnumber(L, d.minimum);
        lua_setfield(L, -2, "minimum");
        lua_pushnumber(L, d.maximum);
        lua_setfield(L, -2, "maximum");
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    return 1;
}

static int on_queue_step(int64_t request, const perigee_generated *step, const perigee_error *error, void *user) {
    callback *c = (callback *)user;
    int stop;
    lua_pushvalue(c->L, 1);
    lua_pushinteger(c->L, (lua_Integer)request);
    if (step) {
        push_step(c->L, step);
        lua_pushnil(c->L);
    } else {
        lua_pushnil(c->L);
        error_table(c->L, perigee_error_status(error), error);
    }
    if (!call_callback(c, 3, 1)) {
        return 1;
    }
    stop = lua_isboolean(c->L, -1) && !lua_toboolean(c->L, -1);
    lua_settop(c->L, 1);
    return stop;
}
%}
%{
static perigee_status push_description(lua_State *L, const perigee_description *d, perigee_error **e) {
    size_t i, n = perigee_description_count(d);
    perigee_totals t;
    perigee_status st;
    t.struct_size = sizeof t;
    st = perigee_description_totals(d, &t, e);
    lua_newtable(L);
    if (!st) {
        set_text(L, "family", t.family);
        set_number(L, "parameters", t.parameters);
        set_number(L, "active", t.active);
        set_number(L, "disk_parameters", t.disk_parameters);
        set_number(L, "disk_bytes", t.disk_bytes);
        set_number(L, "layers", t.layers);
        set_number(L, "kda_layers", t.kda_layers);
        set_number(L, "mla_layers", t.mla_layers);
        set_number(L, "moe_layers", t.moe_layers);
    }
    lua_createtable(L, (int)n, 0);
    for (i = 0; i < n && !st; i++) {
        perigee_component c;
        c.struct_size = sizeof c;
        st = perigee_description_component(d, i, &c, e);
        if (!st) {
            lua_newtable(L);
            set_text(L, "name", c.name);
            set_text(L, "title", c.title);
            set_text(L, "formula", c.formula);
            set_text(L, "shape", c.shape);
            set_text(L, "stored", c.stored);
            set_number(L, "per_instance", c.per_instance);
            set_number(L, "instances", c.instances);
            set_number(L, "total", c.total);
            set_number(L, "active", c.active);
            set_number(L, "disk_total", c.disk_total);
            set_number(L, "disk_bytes", c.disk_bytes);
            lua_rawseti(L, -2, (lua_Integer)i + 1);
        }
    }
    lua_setfield(L, -2, "components");
    return st;
}
%}
