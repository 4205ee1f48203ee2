-- Turns SWIG's parse tree of the public headers into the raw Rust crate.
--     lua5.4 generate.lua tree.xml bindings.rs probe.c
-- bindings.rs declares functions, enumerations, structs, constants and callbacks; probe.c, compiled and run against the
-- headers, prints tests/layout.rs. Whatever can't be mapped ends the run: nothing is left out in silence.
local tree_path, rust_path, probe_path = arg[1], arg[2], arg[3]

-- ---- the tree: SWIG writes elements with attributes and no text, so that a pattern is enough ----
local entities = { lt = "<", gt = ">", amp = "&", quot = '"', apos = "'" }
local function unescape(s)
    return (s:gsub("&(%w+);", entities))
end

local function parse(text)
    local root = { tag = "root", kids = {}, at = {} }
    local stack = { root }
    for close, tag, body, empty in text:gmatch("<(/?)([%w_]+)%s*(.-)%s*(/?)>") do
        if close == "/" then
            table.remove(stack)
        else
            local node = { tag = tag, kids = {}, at = {} }
            local own = {}
            for key, value in body:gmatch('([%w_]+)="(.-)"') do
                own[key] = unescape(value)
            end
            if tag == "attribute" then
                stack[#stack - 1].at[own.name] = own.value -- belongs to the element around its list
            else
                table.insert(stack[#stack].kids, node)
            end
            if empty ~= "/" then
                table.insert(stack, node)
            end
        end
    end
    return root
end

local function child(node, tag)
    for _, kid in ipairs(node.kids) do
        if kid.tag == tag then
            return kid
        end
    end
end

-- Declarations of the project's own headers, in their order.
local wanted = { cdecl = true, enum = true, class = true, constant = true }
local function collect(node, inside, out)
    for _, kid in ipairs(node.kids) do
        local here = inside
        if kid.tag == "include" then
            here = (kid.at.name or ""):match("perigee/[%w_/]+%.h$") ~= nil
        end
        if inside and wanted[kid.tag] then
            out[#out + 1] = kid
        else
            collect(kid, here, out)
        end
    end
    return out
end

local file = assert(io.open(tree_path))
local nodes = collect(parse(file:read("a")), false, {})
file:close()

-- ---- types ----
local primitive = {
    void = "c_void", char = "c_char", ["signed char"] = "i8", ["unsigned char"] = "u8", short = "i16",
    ["unsigned short"] = "u16", int = "c_int", ["unsigned int"] = "c_uint", long = "c_long", ["unsigned long"] = "c_ulong",
    ["long long"] = "i64", ["unsigned long long"] = "u64", float = "f32", double = "f64", size_t = "usize",
    uintptr_t = "usize", intptr_t = "isize", int8_t = "i8", int16_t = "i16", int32_t = "i32", int64_t = "i64",
    uint8_t = "u8", uint16_t = "u16", uint32_t = "u32", uint64_t = "u64",
}
local keywords = { type = true, ["fn"] = true, ["in"] = true, ref = true, match = true, move = true, box = true, use = true,
    loop = true, impl = true, where = true, ["mod"] = true, async = true, final = true, yield = true }
local function name_of(s)
    return s == "self" and "self_" or keywords[s] and "r#" .. s or s
end

local known = {}
local function split(list) -- at commas outside brackets
    local parts, depth, current = {}, 0, ""
    for c in list:gmatch(".") do
        depth = depth + (c == "(" and 1 or c == ")" and -1 or 0)
        if c == "," and depth == 0 then
            parts[#parts + 1], current = current, ""
        else
            current = current .. c
        end
    end
    if current ~= "" and current ~= "void" then
        parts[#parts + 1] = current
    end
    return parts
end

local rust_type
local function signature(arguments, result)
    local types = {}
    for i, a in ipairs(arguments) do
        types[i] = rust_type(a)
    end
    return 'unsafe extern "C" fn(' .. table.concat(types, ", ") .. ")" ..
        (result == "void" and "" or " -> " .. rust_type(result))
end

function rust_type(t) -- SWIG writes the outermost operator first
    if t:match("^p%.f%(") then
        local arguments, result = t:match("^p%.f(%b())%.?(.*)$")
        return "Option<" .. signature(split(arguments:sub(2, -2)), result) .. ">"
    elseif t:match("^p%.q%(const%)%.") then
        return "*const " .. rust_type(t:match("^p%.q%(const%)%.(.*)$"))
    elseif t:match("^p%.") then
        return "*mut " .. rust_type(t:sub(3))
    elseif t:match("^q%(") then
        return rust_type((t:gsub("^q%b()%.", "")))
    elseif t:match("^a%(") then
        local size, element = t:match("^a(%b())%.(.*)$")
        return ("[%s; %s]"):format(rust_type(element), size:sub(2, -2))
    end
    local plain = t:gsub("^struct ", ""):gsub("^enum ", "")
    return primitive[plain] or known[plain] and plain or error("no Rust type for '" .. plain .. "'")
end

local defined, unions = {}, {}
for _, n in ipairs(nodes) do
    if n.tag == "class" or n.tag == "enum" then
        known[n.at.name], defined[n.at.name] = true, true
        unions[n.at.name] = n.at.kind == "union"
    elseif n.tag == "cdecl" and n.at.kind == "typedef" then
        known[n.at.name] = true
    end
end

-- ---- output ----
local out, probe, functions = {}, {}, {}
local function emit(format, ...)
    out[#out + 1] = format:format(...)
end
local function check(format, ...)
    probe[#probe + 1] = format:format(...)
end

local function emit_constant(a)
    if a.type == "p.q(const).char" then
        emit('pub const %s: &[u8] = b"%s\\0";', a.name, a.value)
    elseif a.type == "double" or a.type == "float" then
        emit("pub const %s: f64 = %s;", a.name, a.value)
    else
        emit("pub const %s: %s = %s;", a.name, assert(primitive[a.type], a.name), (a.value:gsub("(%d)[uUlL]+", "%1")))
    end
end

-- An unknown number from a newer library must not be undefined behaviour: a wrapper, not a Rust enum.
local function emit_enum(n)
    local name = n.at.name
    emit("#[repr(transparent)]\n#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]\npub struct %s(pub c_uint);", name)
    local previous = "-1"
    for _, item in ipairs(n.kids) do
        if item.tag == "enumitem" then
            local value = item.at.enumvalue or ("%d"):format(math.tointeger(tonumber(previous)) + 1)
            local number = math.tointeger(tonumber(value))
            assert(number, item.at.name .. ": not a plain number: " .. value)
            assert(number >= 0, item.at.name .. ": a negative one would change the C type")
            emit("pub const %s: %s = %s(%d);", item.at.name, name, name, number)
            check('printf("    assert!(perigee_sys::%s.0 == %%uu32);\\n", (unsigned)%s);', item.at.name, item.at.name)
            previous = value
        end
    end
    check('_Static_assert(sizeof(%s) == sizeof(unsigned), "size of %s");', name, name)
end

local function emit_struct(n)
    local name, union = n.at.name, n.at.kind == "union"
    local debug = not union
    for _, field in ipairs(n.kids) do
        debug = debug and not unions[field.at.type]
    end
    emit("#[repr(C)]\n#[derive(Clone, Copy%s)]\npub %s %s {", debug and ", Debug" or "", union and "union" or "struct", name)
    if not union then -- a union has no name in C; the structs around it show its size
        check('printf("    assert!(size_of::<perigee_sys::%s>() == %%zu && align_of::<perigee_sys::%s>() == %%zu);\\n", sizeof(%s), _Alignof(%s));',
            name, name, name, name)
    end
    for _, field in ipairs(n.kids) do
        if field.tag == "cdecl" then
            local f = name_of(field.at.name)
            emit("    pub %s: %s,", f, rust_type(field.at.decl .. field.at.type))
            if not union then
                check('printf("    assert!(offset!(perigee_sys::%s, %s) == %%zu);\\n", offsetof(%s, %s));', name, f, name,
                    field.at.name)
            end
        end
    end
    emit("}")
end

local function emit_typedef(a)
    local base = a.type:gsub("^struct ", ""):gsub("^enum ", "")
    if a.decl == "" and base == a.name then
        if not defined[base] then -- an opaque handle
            emit("#[repr(C)]\npub struct %s {\n    _data: [u8; 0],\n    _marker: PhantomData<(*mut u8, PhantomPinned)>,\n}", base)
        end
    else
        emit("pub type %s = %s;", a.name, rust_type(a.decl .. a.type))
    end
end

local function add_function(n)
    local _, result = n.at.decl:match("^f(%b())%.(.*)$")
    result = result .. n.at.type
    local list, parameters = child(child(n, "attributelist"), "parmlist"), {}
    for i, p in ipairs(list and list.kids or {}) do
        if p.at.type ~= "void" then
            parameters[#parameters + 1] = name_of(p.at.name or "a" .. i) .. ": " .. rust_type(p.at.type)
        end
    end
    functions[#functions + 1] = ("    pub fn %s(%s)%s;"):format(n.at.name, table.concat(parameters, ", "),
        result == "void" and "" or " -> " .. rust_type(result))
end

for _, n in ipairs(nodes) do
    if n.tag == "constant" then
        emit_constant(n.at)
    elseif n.tag == "enum" then
        emit_enum(n)
    elseif n.tag == "class" then
        emit_struct(n)
    elseif n.at.kind == "typedef" then
        emit_typedef(n.at)
    elseif n.at.kind == "function" then
        add_function(n)
    else
        error("can't map " .. n.tag .. " " .. tostring(n.at.name))
    end
end

local f = assert(io.open(rust_path, "w"))
f:write("// Written by generate.lua from the public headers; do not edit.\n#[allow(unused_imports)]\n",
    "use std::marker::{PhantomData, PhantomPinned};\n#[allow(unused_imports)]\n",
    "use std::os::raw::{c_char, c_int, c_long, c_uint, c_ulong, c_void};\n\n", table.concat(out, "\n"),
    '\nextern "C" {\n', table.concat(functions, "\n"), "\n}\n")
f:close()
f = assert(io.open(probe_path, "w"))
f:write("#include <stddef.h>\n#include <stdio.h>\n#include <perigee/perigee.h>\n#include <perigee/sys/kernel_set.h>\n#include <perigee/sys/kernel_watch.h>\nint main(void) {\n",
    'puts("// Written from the public headers by a compiled probe; do not edit.\\nuse std::mem::{align_of, size_of};\\n\\n',
    "macro_rules! offset {\\n    ($t:ty, $f:ident) => {{\\n        let u = std::mem::MaybeUninit::<$t>::uninit();\\n",
    "        let p = u.as_ptr();\\n        unsafe { std::ptr::addr_of!((*p).$f) as usize - p as usize }\\n    }};\\n}\\n\\n",
    '#[test]\\n#[rustfmt::skip]\\n#[allow(clippy::assertions_on_constants)]\\nfn layout() {");\n', table.concat(probe, "\n"), '\nputs("}");\nreturn 0;\n}\n')
f:close()
print(("%d declarations, %d functions"):format(#nodes, #functions))
