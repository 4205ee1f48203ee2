-- A chat with one question: lua5.4 chat.lua MODEL QUESTION [TOKENS]
local perigee = require "perigee"
if #arg < 2 then
    io.stderr:write "usage: chat.lua MODEL QUESTION [TOKENS]\n"
    os.exit(2)
end
local context = perigee.Context()
local model = perigee.Model(context, arg[1])
local tokenizer = model:tokenizer() or error "the model has no tokenizer"
local question = arg[2]:gsub('[%c"\\]', function(c) return ("\\u%04x"):format(c:byte()) end)
local chat = perigee.Chat(tokenizer, ('[{"role":"user","content":"%s"}]'):format(question))

local options = perigee.GenerationOptions(context, { max_tokens = tonumber(arg[3] or 256) })
local parser = perigee.Parser(tokenizer, chat)
for step in perigee.Session(model):generate(chat:ids(), options) do
    for _, delta in ipairs(step.id and parser:push(step.id) or {}) do
        if delta.kind == "thinking" or delta.kind == "content" then
            io.write(delta.text)
            io.flush()
        end
    end
end
io.write "\n"
