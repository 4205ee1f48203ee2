-- The golden cases and the life of objects, in what Lua 5.4 and LuaJIT both read: lua5.4 test.lua [short]
local perigee = require "perigee"
local short = arg[1] == "short"
local unpack = table.unpack or unpack
local fixtures, text_model = os.getenv "PERIGEE_FIXTURES", os.getenv "PERIGEE_TEXT_MODEL"

local function golden(case)
    return fixtures .. "/golden/" .. case
end

-- an int32 tensor of the expected values
local function expected(case, name)
    local file = assert(io.open(golden(case) .. "/expected/expected.safetensors", "rb"))
    local bytes = file:read "*a"
    file:close()
    local function int32(at) -- of bytes from low to high
        local a, b, c, d = bytes:byte(at, at + 3)
        local value = a + b * 256 + c * 65536 + d * 16777216
        return value < 2147483648 and value or value - 4294967296
    end
    local header = int32(1)
    local from, to = bytes:sub(9, 8 + header):match('"' .. name .. '".-"data_offsets"%s*:%s*%[%s*(%d+)%s*,%s*(%d+)')
    local ids = {}
    for at = from, to - 4, 4 do
        ids[#ids + 1] = int32(9 + header + at)
    end
    return ids
end

local function same(a, b, what)
    assert(#a == #b, what)
    for i = 1, #a do
        assert(a[i] == b[i], what)
    end
end

local function fails(status, f, ...)
    local ok, e = pcall(f, ...)
    assert(not ok, "no error")
    assert(type(e) == "table" and e.status == status, tostring(e))
    return e
end

local function row(logits)
    local t = {}
    for i = 0, #logits - 1 do
        t[#t + 1] = logits[i]
    end
    return t
end

local context = perigee.Context { threads = 1, precision = "exact" } -- as the golden continuations were computed

for _, case in ipairs(short and { "kimi_linear" } or { "kimi_k2", "kimi_k25", "kimi_k3", "kimi_linear", "moonlight" }) do
    local ids, greedy = expected(case, "ids"), expected(case, "greedy")
    local session = perigee.Session(perigee.Model(context, golden(case)))
    local got, logits = {}, session:decode(ids)
    for i = 1, #greedy do
        got[i] = perigee.argmax(logits)
        logits = session:decode { got[i] }
    end
    same(got, greedy, case)
    session:reset()
    got = {}
    local finish
    local options = perigee.GenerationOptions(context, { max_tokens = #greedy, default_stops = false })
    for step in session:generate(ids, options) do
        got[#got + 1], finish = step.id, step.finish
        session:sampler():close()
    end
    same(got, greedy, case)
    assert(finish == "length")
    session:close()
end

local model = perigee.Model(context, golden "kimi_linear")
local ids, greedy = expected("kimi_linear", "ids"), expected("kimi_linear", "greedy")

do -- state, fork, rewind, feed
    local session, sampler = perigee.Session(model), perigee.Sampler(context):temperature(1.0):seed(7)
    session:decode(ids, "none")
    local state, fork = session:save(sampler), session:fork()
    local logits = row(session:decode { 1 })
    local drawn = sampler:sample(logits)
    same(row(fork:decode { 1 }), logits, "fork")
    local other, loaded = perigee.Session(model), perigee.Sampler(context)
    other:load(state, loaded)
    same(other:tokens(), ids, "tokens")
    local again = other:decode { 1 }
    same(row(again), logits, "state")
    assert(loaded:sample(again) == drawn)
    fails(perigee.E_TRUNCATED, other.load, other, state:sub(1, math.floor(#state / 2)))
    assert(other:position() == #ids + 1)
    local longer = { unpack(ids) }
    longer[#longer + 1] = 1
    local fed, kept = session:feed(longer)
    same(row(fed), logits, "feed")
    assert(kept <= #ids)
    session:rewind(0)
    assert(session:position() == 0)
end

do -- errors carry what the library says
    local session = perigee.Session(model)
    local e = fails(perigee.E_TOKEN, session.decode, session, { 1073741824 })
    assert(e.name == "PERIGEE_E_TOKEN" and e.message:find "1073741824", e.message)
    fails(perigee.E_NOT_FOUND, perigee.Model, context, "/nowhere")
    fails(perigee.E_ARGUMENT, perigee.Context, { nothing = 1 })
    assert(not pcall(session.decode, session, { 1.5 }))
    assert(not pcall(session.decode, session, "x"))
    assert(not pcall(perigee.Session, context))
    assert(not pcall(perigee.GenerationOptions, context, { stop = { {} } }))
end

do -- cancel, progress and errors in it
    local cancel, session = perigee.Cancel(), perigee.Session(model)
    cancel:trigger()
    fails(perigee.E_CANCELLED, session.decode, session, { 1, 2, 3 }, "last", cancel)
    assert(session:position() == 0 and cancel:triggered())
    local options = perigee.GenerationOptions(context)
    options:cancel(cancel)
    for step in session:generate({ 1 }, options) do
        assert(step.finish == "cancelled")
    end
    local calls = 0
    perigee.Model(context, golden "kimi_linear", nil, function() calls = calls + 1 end)
    assert(calls > 0)
    fails(perigee.E_CALLBACK, perigee.Model, context, golden "kimi_linear", nil, function() return false end)
    local ok, e = pcall(perigee.Model, context, golden "kimi_linear", nil, function() error { code = 42 } end)
    assert(not ok and e.code == 42)
end

do -- a generation inside a coroutine, one that is left early, and closing in any order
    local session = perigee.Session(model)
    local options = perigee.GenerationOptions(context, { max_tokens = #greedy, default_stops = false })
    local pull = coroutine.wrap(function()
        for step in session:generate(ids, options) do
            coroutine.yield(step.id)
        end
    end)
    for i = 1, #greedy do
        assert(pull() == greedy[i])
    end
    session:reset()
    for step in session:generate(ids, options) do
        if step.tokens == 2 then
            break
        end
    end
    assert(session:position() > 0)
    session:reset()
    local next_step = session:generate(ids, options)
    assert(next_step().id == greedy[1])
    session:close()
    session:close()
    assert(not pcall(next_step))
    assert(not pcall(session.position, session))
    local c = perigee.Context()
    local m = perigee.Model(c, golden "kimi_linear")
    local s = perigee.Session(m)
    m:close()
    c:close()
    s:decode { 1 }
    if not jit then -- what a block closes at its end; LuaJIT has no such variables
        assert(load([[
            local perigee, path = ...
            local kept
            do
                local c <close> = perigee.Context()
                local m <close> = perigee.Model(c, path)
                local s <close> = perigee.Session(m)
                s:decode { 1 }
                kept = s
            end
            assert(not pcall(kept.position, kept))
        ]]))(perigee, golden "kimi_linear")
    end
end

do -- batch, queue, prefix cache
    local a, b, c = perigee.Session(model), perigee.Session(model), perigee.Session(model)
    local alone = row(a:decode(ids))
    local got = perigee.decode_batch { { b, ids }, { c, { -1 } } }
    same(row(got[1].logits), alone, "batch")
    assert(got[2].error.status == perigee.E_TOKEN)
    fails(perigee.E_ARGUMENT, perigee.decode_batch, { { b, { 1 } }, { b, { 1 } } })
    local cache = perigee.PrefixCache(model, 1073741824)
    cache:put(b)
    assert(cache:bytes() > 0)
    local longer = { unpack(ids) }
    longer[#longer + 1] = 1
    assert(cache:get(longer):position() == #ids)

    local queue = perigee.Queue(model, 2)
    local options = perigee.GenerationOptions(context, { max_tokens = #greedy, default_stops = false })
    local replies = {}
    for _ = 1, 3 do
        local number = queue:submit(ids, options, function(request, step)
            table.insert(replies[request], step.id)
        end)
        replies[number] = {}
    end
    while queue:step() > 0 do end
    for i = 1, 3 do
        same(replies[i], greedy, "queue")
    end
    queue:submit(ids, nil, function() error "mine" end)
    local ok, e = pcall(function()
        while queue:step() > 0 do end
    end)
    assert(not ok and tostring(e):find "mine")
end

do -- inspect
    assert(perigee.version():match "^%d+%.%d+%.%d+$")
    local d = context:describe(golden "kimi_k3")
    local sum = 0
    for _, component in ipairs(d.components) do
        sum = sum + component.total
    end
    assert(d.family == "kimi_k3" and sum == d.parameters)
    assert(context:plan(golden "kimi_k3").fits)
    assert(model:info().family == "kimi_linear")
    local in_use, known
    for _, kernel in ipairs(context:kernels()) do
        in_use = in_use or kernel.op == "matmul" and kernel.in_use
    end
    for _, option in ipairs(perigee.options()) do
        known = known or option.name == "threads"
    end
    assert(in_use and known)
    local lines = {}
    local logged = perigee.Context({ log_level = 4 }, function(level, line) lines[#lines + 1] = level .. line end)
    perigee.Model(logged, os.getenv "PERIGEE_STRAY_MODEL")
    assert(#lines > 0 and lines[1]:find "stray.weight", lines[1])
end

do -- a kernel of the host
    local calls = 0
    local set = perigee.KernelSet()
    set:product("matmul_bf16_lua", "bf16", function(weights, rows)
        calls = calls + 1
        local out = {}
        for t, x in ipairs(rows) do
            out[t] = {}
            for r, w in ipairs(weights) do
                local sum = 0
                for k = 1, #x do
                    sum = sum + w[k] * x[k]
                end
                out[t][r] = sum
            end
        end
        return out
    end)
    local c = perigee.Context(nil, nil, set)
    local session = perigee.Session(perigee.Model(c, golden "kimi_linear"))
    local few = { ids[1], ids[2] }
    local logits = session:decode(few)
    assert(perigee.argmax(logits) == perigee.argmax(perigee.Session(model):decode(few)) and calls > 0)
    set = perigee.KernelSet()
    set:product("matmul_bf16_failing", "bf16", function() error "mine" end)
    session = perigee.Session(perigee.Model(perigee.Context(nil, nil, set), golden "kimi_linear"))
    local ok, e = pcall(session.decode, session, few)
    assert(not ok and tostring(e):find "mine", tostring(e))
end

do -- a plugin, traced and checked; one that is not there
    local path = os.getenv "PERIGEE_PLUGIN"
    local c = perigee.Context { threads = 1, plugins = path, trace_kernels = 1, check_kernels = 1 }
    local listed
    for i, kernel in ipairs(c:kernels()) do
        if kernel.origin == path and kernel.name == "matmul_bf16_example" then
            listed = kernel.in_use and i
        end
    end
    assert(listed)
    local session = perigee.Session(perigee.Model(c, golden "kimi_linear"))
    assert(perigee.argmax(session:decode(ids)) == greedy[1])
    local check = c:kernel_check()
    assert(check.calls > 0 and check.different == 0 and check.skipped == 0 and not check.kernel)
    assert(check.largest > 0 and check.largest <= 1)
    local calls = {}
    for _, t in ipairs(c:kernel_trace()) do
        calls[t.kernel] = (calls[t.kernel] or 0) + t.calls
        assert(t.seconds > 0 and t.cols > 0)
    end
    assert(calls.matmul_bf16_example > 0 and calls.rms_norm_example > 0)
    if not short then -- hundreds of megabytes of weights: minutes under valgrind
        local timing = c:time_kernel(listed, 2)
        assert(timing.seconds > 0 and timing.tokens == 2 and timing.multiply_adds == 2 * timing.rows * timing.cols)
    end
    fails(perigee.E_RANGE, c.time_kernel, c, listed, 0)
    fails(perigee.E_STATE, context.kernel_check, context)
    assert(fails(perigee.E_KERNEL, perigee.Context, { plugins = path .. ".none" }).message:find "example.so.none")
end

do -- text
    local tokenizer = perigee.Tokenizer(context, text_model)
    local said = "Grüße, 世界! <|im_end|>"
    local encoded = tokenizer:encode(said)
    assert(tokenizer:decode(encoded) == said)
    local decoder, streamed = perigee.Decoder(tokenizer, true), ""
    for _, id in ipairs(encoded) do
        streamed = streamed .. decoder:push(id)
    end
    assert(streamed .. decoder:flush() == said)
    local chat = perigee.Chat(tokenizer, '[{"role":"user","content":"Hi"}]')
    assert(chat:text():find "Hi" and #chat:segments() > 1 and #chat:ids() > 1)
    assert(fails(perigee.E_FORMAT, perigee.Chat, tokenizer, "[{").offset)
    local parser, kinds = perigee.Parser(tokenizer, chat), {}
    for _, id in ipairs(tokenizer:encode "Hello") do
        for _, delta in ipairs(parser:push(id)) do
            kinds[delta.kind] = true
        end
    end
    for _, delta in ipairs(parser:finish()) do
        kinds[delta.kind] = true
    end
    assert(kinds["end"] and parser:message():find "Hello")
    local constraint = perigee.Constraint(tokenizer, "regex", "ab")
    assert(not pcall(constraint.accept, constraint, tokenizer:encode("7")[1]))
    for _, id in ipairs(tokenizer:encode "ab") do
        constraint:accept(id)
    end
    assert(constraint:complete() ~= "open" and #constraint:allowed() > 0)
    fails(perigee.E_SCHEMA, perigee.Constraint, tokenizer, "schema", "{")
    -- the tokenizer of a model keeps it
    local lent = perigee.Model(context, text_model):tokenizer()
    collectgarbage()
    collectgarbage()
    assert(#lent:encode "still here" > 0)
    assert(model:tokenizer() == nil)
end

do -- samplers
    local logits = { 0.5, 3.0, 2.0, -1.0 }
    assert(perigee.argmax(logits) == 1)
    local top, values = context:top_k(logits, 2)
    assert(top[1] == 1 and top[2] == 2 and values[2] == 2.0)
    local sampler = perigee.Sampler(context):bias({ [1] = -100 }):top_k(1)
    assert(sampler:sample(logits) == 2)
    fails(perigee.E_RANGE, sampler.top_p, sampler, 2.0)
    local p = 0
    for _, l in ipairs(perigee.log_probabilities(logits, { 0, 1, 2, 3 })) do
        p = p + math.exp(l)
    end
    assert(math.abs(p - 1) < 1e-12)
end

if not short then -- what the module costs, beside the seconds that the library counts for its passes
    local session = perigee.Session(perigee.Model(context, golden "kimi_k2"))
    local one, call, pass = { 1 }, math.huge, math.huge
    for _ = 1, 2000 do
        session:reset()
        local before, start = session:statistics().seconds, os.clock()
        session:decode(one)
        call = math.min(call, os.clock() - start)
        pass = math.min(pass, session:statistics().seconds - before)
    end
    local best = call - pass -- of undisturbed steps
    print(("overhead of a step: %.2f us"):format(best * 1e6))
    assert(best < 5e-6)
end
print "lua: ok"
