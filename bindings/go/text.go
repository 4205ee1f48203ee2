package perigee

import (
	"runtime"

	"perigee.example/perigee/internal/capi"
)

// texts copies views of C text out of the numbers that a call gave.
func texts(numbers []int64) string { return string(capi.Bytes(numbers[0], numbers[1])) }

// Tokenizer has ranks and special tokens of a checkpoint; any goroutine may use it.
type Tokenizer struct {
	h     uintptr
	model *Model // it is borrowed from this one, or nil
}

// Tokenizer of the model, or nil if its checkpoint has none. It is usable as long as the model is not closed.
func (m *Model) Tokenizer() *Tokenizer {
	if m.h == 0 {
		return nil
	}
	h := capi.Perigee_model_tokenizer(m.h)
	if h == 0 {
		return nil
	}
	return &Tokenizer{h, m}
}

// OpenTokenizer opens the tokenizer of a checkpoint folder without its weights.
func (r *Runtime) OpenTokenizer(path string) (*Tokenizer, error) {
	if r.h == 0 {
		return nil, closed("runtime")
	}
	t := &Tokenizer{}
	var e uintptr
	err := check(capi.Perigee_tokenizer_open(r.h, path, &t.h, &e), e)
	runtime.KeepAlive(r)
	if err != nil {
		return nil, err
	}
	runtime.SetFinalizer(t, (*Tokenizer).Close)
	return t, nil
}

// Close drops the handle.
func (t *Tokenizer) Close() error {
	if t.h != 0 && t.model == nil {
		capi.Perigee_tokenizer_free(t.h)
		runtime.SetFinalizer(t, nil)
	}
	t.h = 0
	return nil
}

func (t *Tokenizer) open() error {
	if t.h == 0 || (t.model != nil && t.model.h == 0) {
		return closed("tokenizer")
	}
	return nil
}

// TokenizerInfo is what a host needs to know of a tokenizer.
type TokenizerInfo struct {
	Family, Format   string
	Base, Vocabulary int
	EndIDs           []int32
}

// Info of the tokenizer.
func (t *Tokenizer) Info() (TokenizerInfo, error) {
	if err := t.open(); err != nil {
		return TokenizerInfo{}, err
	}
	var e uintptr
	n := make([]int64, 8)
	err := check(capi.Tokenizer_info(t.h, n, &e), e)
	if err != nil {
		return TokenizerInfo{}, err
	}
	defer runtime.KeepAlive(t)
	return TokenizerInfo{texts(n), texts(n[2:]), int(n[4]), int(n[5]), append([]int32(nil), capi.Ids(n[6], n[7])...)}, nil
}

func (t *Tokenizer) encode(text string, f func(uintptr, string, uint, []int32, *uint64, *uintptr) int) ([]int32, error) {
	if err := t.open(); err != nil {
		return nil, err
	}
	ids := make([]int32, len(text)) // never more ids than bytes
	var n uint64
	var e uintptr
	err := check(f(t.h, text, 0, ids, &n, &e), e)
	runtime.KeepAlive(t)
	if err != nil {
		return nil, err
	}
	return ids[:n], nil
}

// Encode text that is only text: names of special tokens in it are spelt out.
func (t *Tokenizer) Encode(text string) ([]int32, error) {
	return t.encode(text, capi.Perigee_encode_text)
}

// EncodeMarkup makes ids of names of special tokens. Not for text of users: it could forge a turn.
func (t *Tokenizer) EncodeMarkup(text string) ([]int32, error) {
	return t.encode(text, capi.Perigee_encode_markup)
}

func skipFlag(skip bool) uint {
	if skip {
		return 1 // PERIGEE_DECODE_SKIP_SPECIAL
	}
	return 0
}

// Decode gives the bytes of ids, which need not be valid UTF-8.
func (t *Tokenizer) Decode(ids []int32, skipSpecial bool) ([]byte, error) {
	if err := t.open(); err != nil {
		return nil, err
	}
	var n uint64
	var e uintptr
	err := check(capi.Perigee_decode(t.h, ids, skipFlag(skipSpecial), nil, &n, &e), e)
	bytes := make([]byte, n)
	if err == nil && n > 0 {
		err = check(capi.Perigee_decode(t.h, ids, skipFlag(skipSpecial), bytes, &n, &e), e)
	}
	runtime.KeepAlive(t)
	if err != nil {
		return nil, err
	}
	return bytes, nil
}

// TokenBytes gives the bytes of one id, and whether it is a special token.
func (t *Tokenizer) TokenBytes(id int32) ([]byte, bool, error) {
	if err := t.open(); err != nil {
		return nil, false, err
	}
	n := make([]int64, 3)
	var e uintptr
	if err := check(capi.Token_bytes(t.h, int(id), n, &e), e); err != nil {
		return nil, false, err
	}
	defer runtime.KeepAlive(t)
	return []byte(texts(n)), n[2] != 0, nil
}

// TokenID gives the id of a special token by its name.
func (t *Tokenizer) TokenID(name string) (int32, error) {
	if err := t.open(); err != nil {
		return 0, err
	}
	var id int32
	var e uintptr
	err := check(capi.Perigee_token_id(t.h, name, &id, &e), e)
	runtime.KeepAlive(t)
	return id, err
}

// Decoder makes whole characters of id after id.
type Decoder struct{ h uintptr }

// NewDecoder makes one.
func (t *Tokenizer) NewDecoder(skipSpecial bool) (*Decoder, error) {
	if err := t.open(); err != nil {
		return nil, err
	}
	d := &Decoder{}
	var e uintptr
	err := check(capi.Perigee_decoder_new(t.h, skipFlag(skipSpecial), &d.h, &e), e)
	runtime.KeepAlive(t)
	if err != nil {
		return nil, err
	}
	runtime.SetFinalizer(d, (*Decoder).Close)
	return d, nil
}

// Close frees the decoder.
func (d *Decoder) Close() error {
	if d.h != 0 {
		capi.Perigee_decoder_free(d.h)
		d.h = 0
		runtime.SetFinalizer(d, nil)
	}
	return nil
}

// Push takes the next id and gives the characters that it completes, often none.
func (d *Decoder) Push(id int32) (string, error) {
	if d.h == 0 {
		return "", closed("decoder")
	}
	defer runtime.KeepAlive(d)
	n := make([]int64, 2)
	var e uintptr
	if err := check(capi.Decoder_push(d.h, int(id), n, &e), e); err != nil {
		return "", err
	}
	return texts(n), nil
}

// Flush ends the text: what was held back becomes U+FFFD.
func (d *Decoder) Flush() (string, error) {
	if d.h == 0 {
		return "", closed("decoder")
	}
	defer runtime.KeepAlive(d)
	n := make([]int64, 2)
	var e uintptr
	if err := check(capi.Decoder_flush(d.h, n, &e), e); err != nil {
		return "", err
	}
	return texts(n), nil
}

// Thinking says whether the model thinks before it answers.
type Thinking int

// As the format has it, on, off.
const (
	ThinkingDefault Thinking = 0
	ThinkingOn      Thinking = 1
	ThinkingOff     Thinking = 2
)

// ChatOptions say how to render; zero values are the defaults.
type ChatOptions struct {
	Thinking                                   Thinking
	OmitGenerationPrompt                       bool
	Format, Effort, ToolChoice, ResponseFormat string
}

// Chat is a rendered conversation.
type Chat struct{ h uintptr }

// Render makes a prompt of messages and tools ("" for none): JSON arrays in OpenAI's form.
func (t *Tokenizer) Render(messages, tools string, o ChatOptions) (*Chat, error) {
	if err := t.open(); err != nil {
		return nil, err
	}
	omit := 0
	if o.OmitGenerationPrompt {
		omit = 1
	}
	c := &Chat{}
	var e uintptr
	err := check(capi.Chat_render(t.h, messages, tools, int(o.Thinking), omit, o.Format, o.Effort, o.ToolChoice,
		o.ResponseFormat, &c.h, &e), e)
	runtime.KeepAlive(t)
	if err != nil {
		return nil, err
	}
	runtime.SetFinalizer(c, (*Chat).Close)
	return c, nil
}

// Close frees the chat.
func (c *Chat) Close() error {
	if c.h != 0 {
		capi.Perigee_chat_free(c.h)
		c.h = 0
		runtime.SetFinalizer(c, nil)
	}
	return nil
}

// IDs of the prompt.
func (c *Chat) IDs() []int32 {
	defer runtime.KeepAlive(c)
	if c.h == 0 {
		return nil
	}
	return append([]int32(nil), capi.Chat_ids(c.h)...)
}

// Text of the prompt for people; never encode it.
func (c *Chat) Text() string {
	defer runtime.KeepAlive(c)
	if c.h == 0 {
		return ""
	}
	return string(capi.Chat_text(c.h))
}

// Segment is a stretch of the prompt: one control token, or one text that was encoded on its own.
type Segment struct {
	Text         string
	Control      bool
	First, Count int // of its ids
}

// Segments of the prompt.
func (c *Chat) Segments() ([]Segment, error) {
	if c.h == 0 {
		return nil, closed("chat")
	}
	defer runtime.KeepAlive(c)
	all := make([]Segment, capi.Perigee_chat_segment_count(c.h))
	n := make([]int64, 5)
	for i := range all {
		var e uintptr
		if err := check(capi.Chat_segment(c.h, i, n, &e), e); err != nil {
			return nil, err
		}
		all[i] = Segment{texts(n), n[2] != 0, int(n[3]), int(n[4])}
	}
	return all, nil
}

// DeltaKind says what a delta is.
type DeltaKind int

// More reasoning, more of the answer, a tool call begins, more of its arguments, it is whole, the message has ended.
const (
	DeltaThinking  DeltaKind = 1
	DeltaContent   DeltaKind = 2
	DeltaCall      DeltaKind = 3
	DeltaArguments DeltaKind = 4
	DeltaCallEnd   DeltaKind = 5
	DeltaEnd       DeltaKind = 6
)

// Delta is a step of an answer.
type Delta struct {
	Kind           DeltaKind
	Call           int // index of the tool call
	Text, Name, ID string
}

// Parser reads the answer of a model, id by id, into reasoning, answer and tool calls.
type Parser struct{ h uintptr }

// NewParser makes one for the answer to chat, or with nil to the tokenizer's default prompt.
func (t *Tokenizer) NewParser(chat *Chat) (*Parser, error) {
	if err := t.open(); err != nil {
		return nil, err
	}
	p := &Parser{}
	var c, e uintptr
	if chat != nil {
		c = chat.h
	}
	err := check(capi.Perigee_parser_new(t.h, c, &p.h, &e), e)
	runtime.KeepAlive(t)
	runtime.KeepAlive(chat)
	if err != nil {
		return nil, err
	}
	runtime.SetFinalizer(p, (*Parser).Close)
	return p, nil
}

// Close frees the parser.
func (p *Parser) Close() error {
	if p.h != 0 {
		capi.Perigee_parser_free(p.h)
		p.h = 0
		runtime.SetFinalizer(p, nil)
	}
	return nil
}

func (p *Parser) deltas(count uint64) ([]Delta, error) {
	all := make([]Delta, count)
	n := make([]int64, 8)
	for i := range all {
		var e uintptr
		if err := check(capi.Parser_delta(p.h, i, n, &e), e); err != nil {
			return nil, err
		}
		all[i] = Delta{DeltaKind(n[0]), int(n[1]), texts(n[2:]), texts(n[4:]), texts(n[6:])}
	}
	return all, nil
}

// Push takes the next id.
func (p *Parser) Push(id int32) ([]Delta, error) {
	if p.h == 0 {
		return nil, closed("parser")
	}
	defer runtime.KeepAlive(p)
	var count uint64
	var e uintptr
	if err := check(capi.Perigee_parser_push(p.h, int(id), &count, &e), e); err != nil {
		return nil, err
	}
	return p.deltas(count)
}

// Finish closes what is open and ends the message.
func (p *Parser) Finish() ([]Delta, error) {
	if p.h == 0 {
		return nil, closed("parser")
	}
	defer runtime.KeepAlive(p)
	var count uint64
	var e uintptr
	if err := check(capi.Perigee_parser_finish(p.h, &count, &e), e); err != nil {
		return nil, err
	}
	return p.deltas(count)
}

// Ended says whether an end token was seen.
func (p *Parser) Ended() bool {
	defer runtime.KeepAlive(p)
	return p.h != 0 && capi.Perigee_parser_ended(p.h) != 0
}

// Message so far in OpenAI's form, as JSON.
func (p *Parser) Message() (string, error) {
	if p.h == 0 {
		return "", closed("parser")
	}
	defer runtime.KeepAlive(p)
	n := make([]int64, 2)
	var e uintptr
	if err := check(capi.Parser_message(p.h, n, &e), e); err != nil {
		return "", err
	}
	return texts(n), nil
}
