/* What closes objects, and the callbacks of logs and kernels. */

%newobject perigee_kernel_set::perigee_kernel_set;
%extend perigee_kernel_set {
    perigee_kernel_set(lua_State *L) {
        perigee_kernel_set *s = NULL;
        perigee_error *e = NULL;
        perigee_status st = perigee_kernel_set_new(&s, &e);
        if (st) raise_status(L, st, e);
        return s;
    }
    ~perigee_kernel_set() { perigee_kernel_set_free($self); }
    /* product(name, "f32" | "bf16", f): f gets rows of weights and rows of activations, and gives rows of results */
    void l_product(lua_State *L, lua_slot name, lua_slot weight, lua_slot f) {
        static const char *const names[] = {"f32", "bf16", NULL};
        static const uint32_t forms[] = {PERIGEE_DTYPE_F32, PERIGEE_DTYPE_BF16};
        perigee_kernel_row row;
        perigee_error *e = NULL;
        perigee_status st;
        memset(&row, 0, sizeof row);
        row.struct_size = sizeof row;
        row.op = PERIGEE_OP_MATMUL;
        row.dtype = forms[luaL_checkoption(L, weight, NULL, names)];
        row.flags = PERIGEE_KERNEL_HOST;
        row.priority = 1000;
        row.name = row.numerics = luaL_checkstring(L, name);
        row.isa = "host";
        row.row_tile = row.token_tile = 1;
        row.run.matmul.host = host_product;
        row.user = make_callback(L, f);
        st = perigee_kernel_set_add($self, &row, free_callback, &e);
        if (st) raise_status(L, st, e);
    }
}

%init %{
{
    static const char *const classes[] = {"Context", "Model", "Session", "Cancel", "KernelSet", "Tokenizer", "Decoder",
        "Chat", "Parser", "Sampler", "Constraint", "GenerationOptions", "Queue", "PrefixCache", NULL};
    int i;
    for (i = 0; classes[i]; i++) {
        SWIG_Lua_get_class_metatable(L, classes[i]);
        lua_pushcfunction(L, close_object);
        lua_setfield(L, -2, "__close");
        lua_pushcfunction(L, collect_object);
        lua_setfield(L, -2, "__gc");
        lua_getfield(L, -1, ".fn");
        lua_pushcfunction(L, close_object);
        lua_setfield(L, -2, "close");
        lua_pop(L, 2);
    }
}
%}
