/* Lua: objects with methods. Whatever may leave by lua_error() keeps its memory in userdata that Lua owns. */
%nodefaultctor;
%nodefaultdtor;

/* C functions become methods below, written with l_ so that they don't meet the C names; constants and enumerators lose
 * their prefix. */
%rename("%(strip:[l_])s", %$isfunction, %$ismember) "";
%rename("%(strip:[PERIGEE_])s", %$isenumitem) "";
%rename("%(strip:[PERIGEE_])s", %$isconstant) "";
%rename("$ignore", %$isfunction, regextarget=1) "^perigee_";
%rename("$ignore", %$isclass) "";
%rename("%s") perigee_context;
%rename("%s") perigee_model;
%rename("%s") perigee_session;
%rename("%s") perigee_cancel;
%rename(version) perigee_version;
%rename(abi_version) perigee_abi_version;
%rename(Context) perigee_context;
%rename(Model) perigee_model;
%rename(Session) perigee_session;
%rename(Cancel) perigee_cancel;

%{
#include <stdlib.h>
#include <string.h>
#include <perigee/batch.h>
#include <perigee/state.h>

#if LUA_VERSION_NUM < 502
#define lua_rawlen lua_objlen
#define lua_setuservalue lua_setfenv
#endif

typedef int lua_results; /* number of values that a method pushed itself */
typedef int lua_slot;    /* index of an argument that a method reads itself */

/* ---- errors are tables: status, name, message, tensor, file, offset, layer; tostring() gives the message ---- */
static int error_text(lua_State *L) {
    lua_getfield(L, 1, "text");
    return 1;
}

static void set_text(lua_State *L, const char *key, const char *value) {
    if (value) {
        lua_pushstring(L, value);
        lua_setfield(L, -2, key);
    }
}

static void set_number(lua_State *L, const char *key, int64_t value) {
    if (value >= 0) {
        lua_pushnumber(L, (lua_Number)value);
        lua_setfield(L, -2, key);
    }
}

static int raise_status(lua_State *L, perigee_status status, perigee_error *e) {
    const char *message = e ? perigee_error_message(e) : perigee_status_text(status);
    lua_newtable(L);
    lua_pushinteger(L, (lua_Integer)status);
    lua_setfield(L, -2, "status");
    set_text(L, "name", perigee_status_name(status));
    set_text(L, "message", message);
    set_text(L, "tensor", perigee_error_tensor(e));
    set_text(L, "file", perigee_error_file(e));
    set_number(L, "offset", perigee_error_offset(e));
    set_number(L, "layer", perigee_error_layer(e));
    lua_pushfstring(L, "%s: %s", perigee_status_name(status), message);
    lua_setfield(L, -2, "text");
    perigee_error_free(e);
    if (luaL_newmetatable(L, "perigee.error")) {
        lua_pushcfunction(L, error_text);
        lua_setfield(L, -2, "__tostring");
    }
    lua_setmetatable(L, -2);
    return lua_error(L);
}

/* ---- options: a table of names and values ---- */
static int free_options(lua_State *L) {
    perigee_options **o = (perigee_options **)lua_touserdata(L, 1);
    perigee_options_free(*o);
    *o = NULL;
    return 0;
}

/* Leaves a userdata on the stack that owns the options; NULL for nil. */
static const perigee_options *to_options(lua_State *L, int index) {
    perigee_options **box;
    perigee_error *e = NULL;
    perigee_status st;
    if (lua_isnoneornil(L, index)) {
        lua_pushnil(L);
        return NULL;
    }
    luaL_checktype(L, index, LUA_TTABLE);
    box = (perigee_options **)lua_newuserdata(L, sizeof *box);
    *box = NULL;
    if (luaL_newmetatable(L, "perigee.options")) {
        lua_pushcfunction(L, free_options);
        lua_setfield(L, -2, "__gc");
    }
    lua_setmetatable(L, -2);
    st = perigee_options_new(box, &e);
    if (st) {
        raise_status(L, st, e);
    }
    lua_pushnil(L);
    while (lua_next(L, index)) {
        const char *name, *value;
        lua_pushvalue(L, -2); /* lua_tolstring changes numbers in place: never the key that lua_next needs */
        name = lua_tostring(L, -1);
        value = lua_tostring(L, -2);
        if (!name || !value) {
            luaL_error(L, "options are names and values");
        }
        st = perigee_options_set_text(*box, name, value, &e);
        if (st) {
            raise_status(L, st, e);
        }
        lua_pop(L, 2);
    }
    return *box;
}

/* Copies a table of ids into a userdata, left on the stack. */
static const int32_t *to_tokens(lua_State *L, int index, size_t *n) {
    size_t k;
    int32_t *ids;
    luaL_checktype(L, index, LUA_TTABLE);
    *n = lua_rawlen(L, index);
    ids = (int32_t *)lua_newuserdata(L, (*n ? *n : 1) * sizeof *ids);
    for (k = 0; k < *n; k++) {
        lua_Number v;
        lua_rawgeti(L, index, (int)k + 1);
        v = lua_tonumber(L, -1);
        if (!lua_isnumber(L, -1) || v < INT32_MIN || v > INT32_MAX || v != (lua_Number)(int32_t)v) {
            luaL_error(L, "token %d is not a 32-bit integer", (int)k + 1);
        }
        ids[k] = (int32_t)v;
        lua_pop(L, 1);
    }
    return ids;
}

static int push_tokens(lua_State *L, const int32_t *ids, size_t n) {
    size_t k;
    lua_createtable(L, (int)n, 0);
    for (k = 0; k < n; k++) {
        lua_pushinteger(L, ids[k]);
        lua_rawseti(L, -2, (int)k + 1);
    }
    return 1;
}

/* ---- progress of a load: a Lua error in it is kept and raised after the C call ---- */
typedef struct progress_state {
    lua_State *L;
    int function;
    int failed; /* the error lies on the stack */
} progress_state;

static int on_load_progress(int64_t done, int64_t total, void *user) {
    progress_state *p = (progress_state *)user;
    int stop;
    if (p->function == 0) {
        return 0;
    }
    if (!lua_checkstack(p->L, 8)) {
        return 1;
    }
    lua_pushvalue(p->L, p->function);
    lua_pushnumber(p->L, (lua_Number)done);
    lua_pushnumber(p->L, (lua_Number)total);
    if (lua_pcall(p->L, 2, 1, 0) != 0) {
        p->failed = 1;
        return 1;
    }
    stop = lua_isboolean(p->L, -1) && !lua_toboolean(p->L, -1);
    lua_pop(p->L, 1);
    return stop;
}

/* ---- steps ---- */
static int push_logits(lua_State *L, const float *values, size_t n) {
    size_t i;
    lua_createtable(L, (int)n, 0);
    for (i = 0; i < n; i++) {
        lua_pushnumber(L, values[i]);
        lua_rawseti(L, -2, (int)i + 1);
    }
    return 1;
}

static int decode_tokens(lua_State *L, perigee_session *session, int tokens, int which, perigee_cancel *cancel) {
    static const char *const names[] = {"none", "last", "all", NULL};
    int kind = luaL_checkoption(L, which, "last", names);
    size_t n, rows = 0, width, r;
    const int32_t *ids = to_tokens(L, tokens, &n);
    const float *logits = NULL;
    perigee_error *e = NULL;
    perigee_status st = perigee_decode_step(session, ids, n, (perigee_logits)kind, &logits, &rows, cancel, &e);
    if (st) {
        return raise_status(L, st, e);
    }
    width = perigee_session_vocabulary(session);
    if (kind == PERIGEE_LOGITS_NONE) {
        return 0;
    }
    if (kind == PERIGEE_LOGITS_LAST) {
        return push_logits(L, logits, width);
    }
    lua_createtable(L, (int)rows, 0);
    for (r = 0; r < rows; r++) {
        push_logits(L, logits + r * width, width);
        lua_rawseti(L, -2, (int)r + 1);
    }
    return 1;
}
%}

%typemap(in, numinputs=0) lua_State *L "$1 = L;"
%typemap(in, checkfn="lua_isany_") lua_slot "$1 = $input;"
%{
#define lua_isany_(L, i) 1
%}
%typemap(out) lua_results "SWIG_arg += $1;"
typedef int lua_results;
typedef int lua_slot;

struct perigee_context {};
struct perigee_model {};
struct perigee_session {};
struct perigee_cancel {};

%newobject perigee_context::perigee_context;
%extend perigee_context {
    perigee_context(lua_State *L, lua_slot options = 1) {
        perigee_context *c = NULL;
        perigee_error *e = NULL;
        const perigee_options *o = to_options(L, options);
        perigee_status st = perigee_context_new(o, NULL, NULL, NULL, &c, &e);
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
            set_text(L, "precision", k.precision);
            lua_pushboolean(L, k.in_use);
            lua_setfield(L, -2, "in_use");
            lua_rawseti(L, -2, (int)i + 1);
        }
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
    perigee_model(lua_State *L, perigee_context *context, lua_slot path, lua_slot options = 3, lua_slot on_progress = 4) {
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
        st = perigee_model_load(context, p, length, o, on_load_progress, &state, NULL, &m, &e);
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
    perigee_session(lua_State *L, perigee_model *model, lua_slot options = 2) {
        perigee_session *s = NULL;
        perigee_error *e = NULL;
        const perigee_options *o = to_options(L, options);
        perigee_status st = perigee_session_new(model, o, &s, &e);
        if (st) raise_status(L, st, e);
        return s;
    }
    ~perigee_session() { perigee_session_free($self); }
    lua_results l_position(lua_State *L) { lua_pushnumber(L, (lua_Number)perigee_session_position($self)); return 1; }
    lua_results l_context(lua_State *L) { lua_pushnumber(L, (lua_Number)perigee_session_context($self)); return 1; }
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
    lua_results l_save(lua_State *L) {
        perigee_error *e = NULL;
        size_t size = 0;
        char *data;
        perigee_status st = perigee_state_size($self, NULL, &size, &e);
        if (st) return raise_status(L, st, e);
        data = (char *)lua_newuserdata(L, size ? size : 1);
        st = perigee_state_save($self, NULL, data, size, &size, &e);
        if (st) return raise_status(L, st, e);
        lua_pushlstring(L, data, size);
        return 1;
    }
    void l_load(lua_State *L, lua_slot state) {
        perigee_error *e = NULL;
        size_t size;
        const char *data = luaL_checklstring(L, state, &size);
        perigee_status st = perigee_state_load($self, NULL, data, size, &e);
        if (st) raise_status(L, st, e);
    }
    void l_save_file(lua_State *L, lua_slot path) {
        perigee_error *e = NULL;
        size_t length;
        const char *p = luaL_checklstring(L, path, &length);
        perigee_status st = perigee_state_save_file($self, NULL, p, length, &e);
        if (st) raise_status(L, st, e);
    }
    void l_load_file(lua_State *L, lua_slot path) {
        perigee_error *e = NULL;
        size_t length;
        const char *p = luaL_checklstring(L, path, &length);
        perigee_status st = perigee_state_load_file($self, NULL, p, length, &e);
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
        set_number(L, "memory_bytes", i.memory_bytes);
        lua_pushnumber(L, i.seconds);
        lua_setfield(L, -2, "seconds");
        return 1;
    }
}
