/* Lua: C code of objects.i. */
%{
static void write_log(int level, const char *message, void *user) {
    callback *c = (callback *)user;
    lua_pushvalue(c->L, 1);
    lua_pushinteger(c->L, level);
    lua_pushstring(c->L, message);
    lua_pcall(c->L, 2, 0, 0); /* a log has nowhere to report its errors */
    lua_settop(c->L, 1);
}

/* ---- a generation: a userdata that its session keeps in its user value, so that it goes first ---- */
typedef struct generation {
    perigee_generation *g;
    int ended;
} generation;

static int free_generation(lua_State *L) {
    generation *g = (generation *)lua_touserdata(L, 1);
    perigee_generation_free(g->g);
    g->g = NULL;
    return 0;
}

static void drop_generation(lua_State *L, int session) {
    generation *g;
    lua_getiuservalue(L, session, 1);
    g = (generation *)luaL_testudata(L, -1, "perigee.generation");
    if (g) {
        perigee_generation_free(g->g);
        g->g = NULL;
    }
    lua_pop(L, 1);
}

/* The one that the session has, or NULL. */
static perigee_generation *running_generation(lua_State *L, int session) {
    generation *g;
    lua_getiuservalue(L, session, 1);
    g = (generation *)luaL_testudata(L, -1, "perigee.generation");
    lua_pop(L, 1);
    return g ? g->g : NULL;
}

static void push_step(lua_State *L, const perigee_generated *s) {
    size_t i;
    lua_newtable(L);
    set_number(L, "id", s->id);
    lua_pushlstring(L, s->text ? s->text : "", s->text ? s->text_length : 0);
    lua_setfield(L, -2, "text");
    if (s->finish != PERIGEE_FINISH_NONE) {
        set_text(L, "finish", perigee_finish_name(s->finish));
    }
    if (s->log_probability == s->log_probability) {
        lua_pushnumber(L, s->log_probability);
        lua_setfield(L, -2, "log_probability");
    }
    if (s->top_count) {
        lua_createtable(L, (int)s->top_count, 0);
        for (i = 0; i < s->top_count; i++) {
            lua_newtable(L);
            set_number(L, "id", s->top_ids[i]);
            lua_pushnumber(L, s->top_log_probabilities[i]);
            lua_setfield(L, -2, "log_probability");
            lua_rawseti(L, -2, (lua_Integer)i + 1);
        }
        lua_setfield(L, -2, "top");
    }
    lua_pushnumber(L, s->seconds);
    lua_setfield(L, -2, "seconds");
    set_number(L, "prompt_tokens", s->prompt_tokens);
    set_number(L, "tokens", s->tokens);
}

static int next_step(lua_State *L) {
    generation *g = (generation *)lua_touserdata(L, lua_upvalueindex(1));
    perigee_generated step;
    perigee_error *e = NULL;
    perigee_status st;
    if (g->ended) {
        return 0;
    }
    if (!g->g) {
        return luaL_error(L, "the generation is closed");
    }
    step.struct_size = sizeof step;
    st = perigee_generation_next(g->g, &step, &e);
    raise_pending(L, e);
    if (st) {
        return raise_status(L, st, e);
    }
    g->ended = step.finish != PERIGEE_FINISH_NONE;
    push_step(L, &step);
    return 1;
}

static int start_generation(lua_State *L, perigee_session *session, int prompt, perigee_generation_options *options) {
    size_t n;
    const int32_t *ids = to_tokens(L, prompt, &n);
    generation *g;
    perigee_error *e = NULL;
    perigee_status st;
    drop_generation(L, 1);
    g = (generation *)lua_newuserdatauv(L, sizeof *g, 1);
    memset(g, 0, sizeof *g);
    if (luaL_newmetatable(L, "perigee.generation")) {
        lua_pushcfunction(L, free_generation);
        lua_setfield(L, -2, "__gc");
        lua_pushcfunction(L, free_generation);
        lua_setfield(L, -2, "__close");
    }
    lua_setmetatable(L, -2);
    st = perigee_generation_new(session, ids, n, options, &g->g, &e);
    if (st) {
        return raise_status(L, st, e);
    }
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, -2, 1);
    lua_pushvalue(L, -1);
    lua_setiuservalue(L, 1, 1);
    lua_pushvalue(L, -1);
    lua_pushcclosure(L, next_step, 1);
    lua_insert(L, -2);
    lua_pushnil(L);
    lua_insert(L, -2);
    lua_pushnil(L);
    lua_insert(L, -2);
    return 4; /* function, state, first value, what `for` closes */
}

/* ---- close: once, and in the right order; a model that lent its tokenizer waits for the collector ---- */
static int close_object(lua_State *L) {
    swig_lua_userdata *u = (swig_lua_userdata *)lua_touserdata(L, 1);
    swig_lua_class *c;
    if (!u || !u->own || !u->ptr) {
        return 0;
    }
    c = (swig_lua_class *)u->type->clientdata;
    if (u->type == SWIGTYPE_p_perigee_session) {
        drop_generation(L, 1);
    } else if (u->type == SWIGTYPE_p_perigee_model) {
        int lent = lua_getiuservalue(L, 1, 1) == LUA_TBOOLEAN;
        lua_pop(L, 1);
        if (lent) {
            return 0;
        }
    }
    if (c && c->destructor) {
        c->destructor(u->ptr);
    }
    u->own = 0;
    u->ptr = NULL;
    return 0;
}

static int collect_object(lua_State *L) {
    lua_pushnil(L);
    lua_setiuservalue(L, 1, 1); /* no tokenizer can be left: it holds its model */
    return close_object(L);
}

/* ---- kernels ---- */
static float weight_of(const perigee_matrix *w, size_t row, size_t column) {
    const unsigned char *at = (const unsigned char *)w->codes + row * w->row_bytes;
    uint32_t bits = 0;
    uint16_t half;
    float value;
    if (w->dtype == PERIGEE_DTYPE_F32) {
        memcpy(&bits, at + 4 * column, sizeof bits);
    } else {
        memcpy(&half, at + 2 * column, sizeof half);
        bits = (uint32_t)half << 16;
    }
    memcpy(&value, &bits, sizeof value);
    return value;
}

static int32_t host_product(void *user, const perigee_matrix *w, size_t first, size_t count, const float *x, size_t ldx,
                            size_t m, float *y, size_t ldy) {
    callback *c = (callback *)user;
    size_t r, t, k;
    int fine = 1;
    lua_pushvalue(c->L, 1);
    lua_createtable(c->L, (int)count, 0);
    for (r = 0; r < count; r++) {
        lua_createtable(c->L, (int)w->cols, 0);
        for (k = 0; k < w->cols; k++) {
            lua_pushnumber(c->L, weight_of(w, first + r, k));
            lua_rawseti(c->L, -2, (lua_Integer)k + 1);
        }
        lua_rawseti(c->L, -2, (lua_Integer)r + 1);
    }
    lua_createtable(c->L, (int)m, 0);
    for (t = 0; t < m; t++) {
        lua_createtable(c->L, (int)w->cols, 0);
        for (k = 0; k < w->cols; k++) {
            lua_pushnumber(c->L, x[t * ldx + k]);
            lua_rawseti(c->L, -2, (lua_Integer)k + 1);
        }
        lua_rawseti(c->L, -2, (lua_Integer)t + 1);
    }
    if (!call_callback(c, 2, 1)) {
        return 1;
    }
    for (t = 0; fine && t < m; t++) {
        fine = lua_istable(c->L, -1) && lua_rawgeti(c->L, -1, (lua_Integer)t + 1) == LUA_TTABLE;
        for (r = 0; fine && r < count; r++) {
            lua_rawgeti(c->L, -1, (lua_Integer)r + 1);
            fine = lua_isnumber(c->L, -1);
            y[t * ldy + r] = (float)lua_tonumber(c->L, -1);
            lua_pop(c->L, 1);
        }
        lua_settop(c->L, 2);
    }
    lua_settop(c->L, 1);
    return fine ? 0 : 2;
}
%}
