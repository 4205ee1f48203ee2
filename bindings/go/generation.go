package perigee

import (
	"context"
	"math"
	"runtime"
	"runtime/cgo"

	"perigee.example/perigee/internal/capi"
)

// Finish says why a generation came to its end.
type Finish int

// It goes on; a stop id; a stop string; as many tokens as were asked for; cancelled; no room; the callback.
const (
	FinishNone        Finish = 0
	FinishStop        Finish = 1
	FinishStopString  Finish = 2
	FinishLength      Finish = 3
	FinishCancelled   Finish = 4
	FinishContextFull Finish = 5
	FinishCallback    Finish = 6
)

func (f Finish) String() string { return capi.Perigee_finish_name(int(f)) }

// Generate says how to generate; zero values are the defaults: greedy, no limit but the context.
type Generate struct {
	Sampler          *Sampler    // copied
	Constraint       *Constraint // copied
	MaxTokens        int
	StopIDs          []int32
	Stop             []string // texts
	NoDefaultStops   bool
	LogProbabilities bool
	Top              int // also log-probabilities of this many tokens
}

// raw makes the C object. The session's own runtime is not known here: options hold no more of one than memory.
func (g *Generate) raw(cancel uintptr) (uintptr, error) {
	r, err := NewRuntime()
	if err != nil {
		return 0, err
	}
	defer r.Close()
	var o, e uintptr
	if err := check(capi.Perigee_generation_options_new(r.h, &o, &e), e); err != nil {
		return 0, err
	}
	set := func(status int) {
		if err == nil {
			err = check(status, e)
		}
	}
	set(capi.Perigee_generation_options_set_sampler(o, g.Sampler.raw(), &e))
	set(capi.Perigee_generation_options_set_constraint(o, g.Constraint.raw(), &e))
	if g.MaxTokens != 0 {
		set(capi.Perigee_generation_options_set_max_tokens(o, int64(g.MaxTokens), &e))
	}
	for _, id := range g.StopIDs {
		set(capi.Perigee_generation_options_add_stop_id(o, int(id), &e))
	}
	for _, text := range g.Stop {
		set(capi.Perigee_generation_options_add_stop_string(o, text, &e))
	}
	if g.NoDefaultStops {
		set(capi.Perigee_generation_options_set_default_stops(o, 0, &e))
	}
	if g.LogProbabilities || g.Top > 0 {
		set(capi.Perigee_generation_options_set_log_probabilities(o, g.Top, &e))
	}
	set(capi.Perigee_generation_options_set_cancel(o, cancel, &e))
	runtime.KeepAlive(g)
	if err != nil {
		capi.Perigee_generation_options_free(o)
		return 0, err
	}
	return o, nil
}

// Token is a token with its log-probability.
type Token struct {
	ID             int32
	LogProbability float64
}

// Step is one step of a generation.
type Step struct {
	ID                   int32  // -1 if the end came without a token
	Text                 string // whole characters that became certain
	Finish               Finish
	LogProbability       float64 // NaN unless asked for
	Top                  []Token
	Seconds              float64
	PromptTokens, Tokens int
}

func makeStep(n []int64, r []float64) Step {
	s := Step{ID: int32(n[1]), Text: texts(n[2:]), Finish: Finish(n[0]), LogProbability: r[0], Seconds: r[1],
		PromptTokens: int(n[7]), Tokens: int(n[8])}
	if n[6] > 0 {
		ids, values := capi.Ids(n[4], n[6]), capi.Doubles(n[5], n[6])
		for i, id := range ids {
			s.Top = append(s.Top, Token{id, values[i]})
		}
	}
	return s
}

// Generation gives a token at a time:
//
//	for g.Next() {
//		fmt.Print(g.Step().Text)
//	}
//	err := g.Err()
//
// It has its session to itself until it is closed or at its end.
type Generation struct {
	h       uintptr
	session *Session
	ctx     context.Context
	stop    func()
	numbers []int64
	reals   []float64
	step    Step
	err     error
}

// Generate takes in the prompt (with none, it goes on from what is there) and generates; ctx stops it.
func (s *Session) Generate(ctx context.Context, prompt []int32, options Generate) (*Generation, error) {
	if s.h == 0 {
		return nil, closed("session")
	}
	cancel, stop, err := watch(ctx)
	if err != nil {
		return nil, err
	}
	o, err := options.raw(cancel)
	if err != nil {
		stop()
		return nil, err
	}
	defer capi.Perigee_generation_options_free(o)
	g := &Generation{session: s, ctx: ctx, stop: stop, numbers: make([]int64, 9), reals: make([]float64, 2)}
	var e uintptr
	var h uintptr // not &g.h: C must not see Go pointers beside it
	if err := check(capi.Perigee_generation_new(s.h, prompt, o, &h, &e), e); err != nil {
		stop()
		return nil, err
	}
	g.h = h
	runtime.SetFinalizer(g, (*Generation).Close)
	return g, nil
}

// Next generates a token; false at the end or behind a failure, which Err gives.
func (g *Generation) Next() bool {
	if g.h == 0 || g.err != nil || g.step.Finish != FinishNone {
		return false
	}
	if g.session.h == 0 {
		g.err = closed("session")
		return false
	}
	var e uintptr
	g.err = check(capi.Generation_next(g.h, g.numbers, g.reals, &e), e)
	runtime.KeepAlive(g)
	if g.err != nil {
		return false
	}
	g.step = makeStep(g.numbers, g.reals)
	return g.step.Finish == FinishNone || g.step.ID >= 0 || g.step.Text != ""
}

// Step that Next made. Behind the last one it says why the generation ended.
func (g *Generation) Step() Step { return g.step }

// Err is what made Next fail; the context's own error if that ended the generation.
func (g *Generation) Err() error {
	if g.err == nil && g.step.Finish == FinishCancelled && g.ctx != nil {
		return g.ctx.Err()
	}
	return g.err
}

// Sampler copies the sampler as it is behind the tokens so far: with it, and the newest token as prompt, the same tokens
// follow as without a break.
func (g *Generation) Sampler() (*Sampler, error) {
	if g.h == 0 {
		return nil, closed("generation")
	}
	var h, e uintptr
	err := check(capi.Perigee_generation_sampler(g.h, &h, &e), e)
	runtime.KeepAlive(g)
	if err != nil {
		return nil, err
	}
	return ownSampler(h), nil
}

// Close frees the generation. The session can be used again.
func (g *Generation) Close() error {
	if g.h != 0 {
		capi.Perigee_generation_free(g.h)
		g.h = 0
		g.stop()
		runtime.SetFinalizer(g, nil)
	}
	return nil
}

// Score takes in ids and gives the log-probabilities of all but the first, each behind those before it.
func (s *Session) Score(ctx context.Context, ids []int32) ([]float64, error) {
	if s.h == 0 {
		return nil, closed("session")
	}
	cancel, stop, err := watch(ctx)
	if err != nil {
		return nil, err
	}
	defer stop()
	out := make([]float64, int(math.Max(1, float64(len(ids)-1))))
	var e uintptr
	status := capi.Score(s.h, ids, out, cancel, &e)
	runtime.KeepAlive(s)
	if err := check(status, e); err != nil {
		return nil, cause(ctx, err)
	}
	return out[:len(ids)-1], nil
}

// Queue shares passes over the weights between requests; each gets what it would get alone. One goroutine at a time.
type Queue struct {
	h        uintptr
	panicked *any
}

// NewQueue works on at most active requests at once, each in a session with the options.
func (m *Model) NewQueue(active int, options ...Option) (*Queue, error) {
	if m.h == 0 {
		return nil, closed("model")
	}
	o, err := raw(options)
	if err != nil {
		return nil, err
	}
	defer capi.Perigee_options_free(o)
	q := &Queue{panicked: new(any)}
	var h, e uintptr
	err = check(capi.Perigee_queue_new(m.h, o, int64(active), &h, &e), e)
	runtime.KeepAlive(m)
	if err != nil {
		return nil, err
	}
	q.h = h
	runtime.SetFinalizer(q, (*Queue).Close)
	return q, nil
}

// Close frees the queue and drops its requests.
func (q *Queue) Close() error {
	if q.h != 0 {
		capi.Perigee_queue_free(q.h)
		q.h = 0
		runtime.SetFinalizer(q, nil)
	}
	return nil
}

// Submit adds a request. f gets each step, progress of the prompt and the failure included; false ends the request.
func (q *Queue) Submit(prompt []int32, options Generate, f func(request int64, step Step, err error) bool) (int64, error) {
	if q.h == 0 {
		return 0, closed("queue")
	}
	o, err := options.raw(0)
	if err != nil {
		return 0, err
	}
	defer capi.Perigee_generation_options_free(o)
	take := func(request int64, step, failure uintptr) bool {
		if step == 0 {
			return f(request, Step{ID: -1}, copyError(failure))
		}
		n, r := make([]int64, 9), make([]float64, 2)
		capi.Step_read(uint64(step), n, r)
		return f(request, makeStep(n, r), nil)
	}
	handle := cgo.NewHandle(&capi.Request{Fn: take, Panicked: q.panicked}) // released by the library, also on failure
	var request int64
	var e uintptr
	err = check(capi.Queue_submit(q.h, prompt, o, uint64(handle), &request, &e), e)
	runtime.KeepAlive(q)
	return request, err
}

// Cancel ends a request at the next step.
func (q *Queue) Cancel(request int64) error {
	if q.h == 0 {
		return closed("queue")
	}
	var e uintptr
	err := check(capi.Perigee_queue_cancel(q.h, request, &e), e)
	runtime.KeepAlive(q)
	return err
}

// StepSeconds aims at steps of at most this length while prompts are taken in beside generations.
func (q *Queue) StepSeconds(seconds float64) error {
	if q.h == 0 {
		return closed("queue")
	}
	var e uintptr
	err := check(capi.Perigee_queue_set_step_seconds(q.h, seconds, &e), e)
	runtime.KeepAlive(q)
	return err
}

// Step is one pass; it gives the number of requests that are not at their end.
func (q *Queue) Step() (int, error) {
	if q.h == 0 {
		return 0, closed("queue")
	}
	var left uint64
	var e uintptr
	err := check(capi.Perigee_queue_step(q.h, &left, &e), e)
	runtime.KeepAlive(q)
	if p := *q.panicked; p != nil {
		*q.panicked = nil
		panic(p)
	}
	return int(left), err
}

// Item is a session of a batch, and what it takes in.
type Item struct {
	Session *Session
	Tokens  []int32
	Logits  []float32 // out: a copy of the last token's
	Err     error     // out
}

// DecodeBatch takes tokens into different sessions of one model in one pass over the weights.
func DecodeBatch(ctx context.Context, items []Item) error {
	cancel, stop, err := watch(ctx)
	if err != nil {
		return err
	}
	defer stop()
	numbers := make([]int64, 6*len(items))
	var ids []int32
	for i, item := range items {
		if item.Session == nil || item.Session.h == 0 {
			return closed("session")
		}
		numbers[6*i], numbers[6*i+1], numbers[6*i+2] = int64(item.Session.h), int64(len(ids)), int64(len(item.Tokens))
		ids = append(ids, item.Tokens...)
	}
	var e uintptr
	whole := check(capi.Batch(numbers, ids, cancel, &e), e)
	for i := range items {
		n := numbers[6*i:]
		items[i].Err = check(int(n[3]), uintptr(n[5]))
		items[i].Logits = nil
		if n[3] == 0 && n[4] != 0 {
			items[i].Logits = append([]float32(nil), capi.Floats(uint64(n[4]), uint64(items[i].Session.vocabulary))...)
		}
	}
	runtime.KeepAlive(items)
	return whole
}

// PrefixCache keeps forks of sessions under a byte limit, found again by the longest common prefix.
type PrefixCache struct {
	h          uintptr
	vocabulary int
}

// NewPrefixCache makes one that holds at most this many bytes.
func (m *Model) NewPrefixCache(bytes int64) (*PrefixCache, error) {
	if m.h == 0 {
		return nil, closed("model")
	}
	c := &PrefixCache{vocabulary: m.vocabulary}
	var e uintptr
	err := check(capi.Perigee_prefix_cache_new(m.h, bytes, &c.h, &e), e)
	runtime.KeepAlive(m)
	if err != nil {
		return nil, err
	}
	runtime.SetFinalizer(c, (*PrefixCache).Close)
	return c, nil
}

// Close frees the cache.
func (c *PrefixCache) Close() error {
	if c.h != 0 {
		capi.Perigee_prefix_cache_free(c.h)
		c.h = 0
		runtime.SetFinalizer(c, nil)
	}
	return nil
}

// Put keeps a fork of the session as it is.
func (c *PrefixCache) Put(s *Session) error {
	if c.h == 0 || s.h == 0 {
		return closed("cache or session")
	}
	var e uintptr
	err := check(capi.Perigee_prefix_cache_put(c.h, s.h, &e), e)
	runtime.KeepAlive(c)
	runtime.KeepAlive(s)
	return err
}

// Get gives a session that holds the longest prefix of tokens that can be had, at most all but the last.
func (c *PrefixCache) Get(tokens []int32, options ...Option) (*Session, error) {
	if c.h == 0 {
		return nil, closed("cache")
	}
	o, err := raw(options)
	if err != nil {
		return nil, err
	}
	defer capi.Perigee_options_free(o)
	var h, e uintptr
	err = check(capi.Perigee_prefix_cache_get(c.h, tokens, o, &h, &e), e)
	runtime.KeepAlive(c)
	if err != nil {
		return nil, err
	}
	return adopt(h, c.vocabulary), nil
}

// Bytes held now.
func (c *PrefixCache) Bytes() int64 {
	defer runtime.KeepAlive(c)
	if c.h == 0 {
		return 0
	}
	return capi.Perigee_prefix_cache_bytes(c.h)
}
