/* Lua: how arguments come in, and the classes. */
/* arguments that were not given are nil: what a method pushes comes behind all that it may read */
%typemap(in, numinputs=0) lua_State *L "$1 = L;"
%typemap(in, checkfn="lua_isany_") lua_slot "$1 = $input; if (lua_gettop(L) < 8) lua_settop(L, 8);"
%{
#define lua_isany_(L, i) 1
%}
%typemap(out) lua_results "SWIG_arg += $1;"
typedef int lua_results;
typedef int lua_slot;

/* A closed object is NULL. */
%define LUA_OPEN(T)
%typemap(check) struct T *self, T *needed
    %{ if (!$1) {
           lua_pushliteral(L, "the object is closed");
           goto fail;
       } %}
%enddef
LUA_OPEN(perigee_context)
LUA_OPEN(perigee_model)
LUA_OPEN(perigee_session)
LUA_OPEN(perigee_cancel)
LUA_OPEN(perigee_kernel_set)
LUA_OPEN(perigee_tokenizer)
LUA_OPEN(perigee_decoder)
LUA_OPEN(perigee_chat)
LUA_OPEN(perigee_parser)
LUA_OPEN(perigee_sampler)
LUA_OPEN(perigee_constraint)
LUA_OPEN(perigee_generation_options)
LUA_OPEN(perigee_queue)
LUA_OPEN(perigee_prefix_cache)

struct perigee_context {};
struct perigee_model {};
struct perigee_session {};
struct perigee_cancel {};
struct perigee_kernel_set {};
struct perigee_tokenizer {};
struct perigee_decoder {};
struct perigee_chat {};
struct perigee_parser {};
struct perigee_sampler {};
struct perigee_constraint {};
struct perigee_generation_options {};
struct perigee_queue {};
struct perigee_prefix_cache {};
