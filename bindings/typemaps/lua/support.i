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
%rename("%s") perigee_kernel_set;
%rename("%s") perigee_tokenizer;
%rename("%s") perigee_decoder;
%rename("%s") perigee_chat;
%rename("%s") perigee_parser;
%rename("%s") perigee_sampler;
%rename("%s") perigee_constraint;
%rename("%s") perigee_generation_options;
%rename("%s") perigee_queue;
%rename("%s") perigee_prefix_cache;
%rename(version) perigee_version;
%rename(abi_version) perigee_abi_version;
%rename(Context) perigee_context;
%rename(Model) perigee_model;
%rename(Session) perigee_session;
%rename(Cancel) perigee_cancel;
%rename(KernelSet) perigee_kernel_set;
%rename(Tokenizer) perigee_tokenizer;
%rename(Decoder) perigee_decoder;
%rename(Chat) perigee_chat;
%rename(Parser) perigee_parser;
%rename(Sampler) perigee_sampler;
%rename(Constraint) perigee_constraint;
%rename(GenerationOptions) perigee_generation_options;
%rename(Queue) perigee_queue;
%rename(PrefixCache) perigee_prefix_cache;

%{
#include <stdlib.h>
#include <string.h>
#include <perigee/batch.h>
#include <perigee/queue.h>
#include <perigee/state.h>

#if LUA_VERSION_NUM < 504
#if LUA_VERSION_NUM != 501
#error "the module is for Lua 5.4 and LuaJIT"
#endif
#include <luajit.h>
/* LuaJIT has the functions of Lua 5.1: no types from the getters, no user values. What is a user value lies in the
 * environment of the userdata, under a key that nobody else has. */
static const char user_value_key;

static int get_field(lua_State *L, int index, const char *key) {
    lua_getfield(L, index, key);
    return lua_type(L, -1);
}

static int raw_get_index(lua_State *L, int index, int at) {
    lua_rawgeti(L, index, at);
    return lua_type(L, -1);
}

static int is_integer(lua_State *L, int index) {
    lua_Number v = lua_tonumber(L, index);
    return lua_type(L, index) == LUA_TNUMBER && v >= -9007199254740992.0 && v <= 9007199254740992.0 &&
           v == (lua_Number)(lua_Integer)v;
}

static int get_user_value(lua_State *L, int index) {
    lua_getfenv(L, index);
    lua_pushlightuserdata(L, (void *)&user_value_key);
    lua_rawget(L, -2);
    lua_remove(L, -2);
    return lua_type(L, -1);
}

static void set_user_value(lua_State *L, int index) {
    index = index < 0 ? lua_gettop(L) + index + 1 : index;
    lua_createtable(L, 0, 1);
    lua_pushlightuserdata(L, (void *)&user_value_key);
    lua_pushvalue(L, -3);
    lua_rawset(L, -3);
    lua_setfenv(L, index);
    lua_pop(L, 1);
}

#undef lua_rawlen
#define lua_rawlen lua_objlen
#define lua_getfield get_field
#define lua_rawgeti(L, index, at) raw_get_index(L, index, (int)(at))
#define lua_isinteger is_integer
#define lua_newuserdatauv(L, size, values) lua_newuserdata(L, size)
#define lua_getiuservalue(L, index, n) get_user_value(L, index)
#define lua_setiuservalue(L, index, n) set_user_value(L, index)
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
        lua_pushinteger(L, (lua_Integer)value);
        lua_setfield(L, -2, key);
    }
}

static void set_real(lua_State *L, const char *key, double value) {
    lua_pushnumber(L, value);
    lua_setfield(L, -2, key);
}

static void error_table(lua_State *L, perigee_status status, const perigee_error *e) {
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
    if (luaL_newmetatable(L, "perigee.error")) {
        lua_pushcfunction(L, error_text);
        lua_setfield(L, -2, "__tostring");
    }
    lua_setmetatable(L, -2);
}

static void push_error(lua_State *L, perigee_status status, perigee_error *e) {
    error_table(L, status, e);
    perigee_error_free(e);
}

static void raise_pending(lua_State *L, perigee_error *e);

/* The error of a callback of Lua's goes before what the library says of it. */
static int raise_status(lua_State *L, perigee_status status, perigee_error *e) {
    raise_pending(L, e);
    push_error(L, status, e);
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
    lua_pushinteger(p->L, (lua_Integer)done);
    lua_pushinteger(p->L, (lua_Integer)total);
    if (lua_pcall(p->L, 2, 1, 0) != 0) {
        p->failed = 1;
        return 1;
    }
    stop = lua_isboolean(p->L, -1) && !lua_toboolean(p->L, -1);
    lua_pop(p->L, 1);
    return stop;
}

/* ---- callbacks run on a Lua thread of their own, which the registry holds ---- */
typedef struct callback {
    lua_State *L; /* slot 1: the function */
    int reference;
} callback;

static callback *make_callback(lua_State *L, int index) {
    callback *c;
    lua_State *thread;
    luaL_checktype(L, index, LUA_TFUNCTION);
    thread = lua_newthread(L);
    lua_pushvalue(L, index);
    lua_xmove(L, thread, 1);
    c = (callback *)malloc(sizeof *c);
    if (!c) {
        luaL_error(L, "out of memory");
        return NULL;
    }
    c->L = thread;
    c->reference = luaL_ref(L, LUA_REGISTRYINDEX);
    return c;
}

static void free_callback(void *user) {
    callback *c = (callback *)user;
    luaL_unref(c->L, LUA_REGISTRYINDEX, c->reference);
    free(c);
}

/* Calls what was pushed. An error is kept for raise_pending(), the first one of several. */
static int call_callback(callback *c, int arguments, int results) {
    if (lua_pcall(c->L, arguments, results, 0) == LUA_OK) {
        return 1;
    }
    if (lua_getfield(c->L, LUA_REGISTRYINDEX, "perigee.pending") == LUA_TNIL) {
        lua_pushvalue(c->L, -2);
        lua_setfield(c->L, LUA_REGISTRYINDEX, "perigee.pending");
    }
    lua_settop(c->L, 1);
    return 0;
}

static void raise_pending(lua_State *L, perigee_error *e) {
    if (lua_getfield(L, LUA_REGISTRYINDEX, "perigee.pending") != LUA_TNIL) {
        lua_pushnil(L);
        lua_setfield(L, LUA_REGISTRYINDEX, "perigee.pending");
        perigee_error_free(e);
        lua_error(L);
    }
    lua_pop(L, 1);
}

/* ---- logits: a copy of a row, indexed from 0 as ids are ---- */
typedef struct row {
    size_t n;
    float values[];
} row;

static int row_index(lua_State *L) {
    const row *r = (const row *)luaL_checkudata(L, 1, "perigee.logits");
    lua_Integer i = lua_isinteger(L, 2) ? lua_tointeger(L, 2) : -1;
    if (i < 0 || (size_t)i >= r->n) {
        return 0;
    }
    lua_pushnumber(L, r->values[i]);
    return 1;
}

static int row_length(lua_State *L) {
    lua_pushinteger(L, (lua_Integer)((const row *)luaL_checkudata(L, 1, "perigee.logits"))->n);
    return 1;
}

static int push_logits(lua_State *L, const float *values, size_t n) {
    row *r = (row *)lua_newuserdatauv(L, sizeof *r + n * sizeof *values, 0);
    r->n = n;
    memcpy(r->values, values, n * sizeof *values);
    if (luaL_newmetatable(L, "perigee.logits")) {
        lua_pushcfunction(L, row_index);
        lua_setfield(L, -2, "__index");
        lua_pushcfunction(L, row_length);
        lua_setfield(L, -2, "__len");
    }
    lua_setmetatable(L, -2);
    return 1;
}

/* Logits, or a table of numbers that is copied to a userdata left on the stack. */
static const float *to_logits(lua_State *L, int index, size_t *n) {
    const row *r = (const row *)luaL_testudata(L, index, "perigee.logits");
    float *values;
    size_t i;
    if (r) {
        lua_pushnil(L);
        *n = r->n;
        return r->values;
    }
    luaL_checktype(L, index, LUA_TTABLE);
    *n = lua_rawlen(L, index);
    values = (float *)lua_newuserdatauv(L, (*n ? *n : 1) * sizeof *values, 0);
    for (i = 0; i < *n; i++) {
        lua_rawgeti(L, index, (lua_Integer)i + 1);
        values[i] = (float)luaL_checknumber(L, -1);
        lua_pop(L, 1);
    }
    return values;
}

/* ---- steps ---- */
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

