package perigee

import (
	"runtime"

	"perigee.example/perigee/internal/capi"
)

// Argmax is the index of the greatest logit, the lowest one of equals.
func Argmax(logits []float32) (int32, error) {
	var id int32
	var e uintptr
	err := check(capi.Perigee_argmax(logits, &id, &e), e)
	return id, err
}

// TopK gives the k greatest logits with their ids, greatest first.
func (r *Runtime) TopK(logits []float32, k int) ([]int32, []float32, error) {
	if r.h == 0 {
		return nil, nil, closed("runtime")
	}
	ids, values := make([]int32, k), make([]float32, k)
	var e uintptr
	err := check(capi.Top_k(r.h, logits, uint64(k), ids, values, &e), e)
	runtime.KeepAlive(r)
	return ids, values, err
}

// LogProbabilities of tokens under softmax of the logits.
func LogProbabilities(logits []float32, ids []int32) ([]float64, error) {
	out := make([]float64, len(ids))
	var e uintptr
	err := check(capi.Log_probabilities(logits, ids, out, &e), e)
	return out, err
}

// Sampler is a chain of stages that turns a row of logits into an id; they work in the order in which they are added.
type Sampler struct{ h uintptr }

// Stage adds a stage to a sampler.
type Stage func(h uintptr, e *uintptr) int

// Repetition divides the positive logits of tokens among the last window of the history, and multiplies the others.
func Repetition(penalty float64, window int) Stage {
	return func(h uintptr, e *uintptr) int {
		return capi.Perigee_sampler_add_repetition(h, penalty, int64(window), e)
	}
}

// Presence takes penalty off the logits of tokens among the last window of the history.
func Presence(penalty float64, window int) Stage {
	return func(h uintptr, e *uintptr) int {
		return capi.Perigee_sampler_add_presence(h, penalty, int64(window), e)
	}
}

// Frequency is Presence times the number of occurrences.
func Frequency(penalty float64, window int) Stage {
	return func(h uintptr, e *uintptr) int {
		return capi.Perigee_sampler_add_frequency(h, penalty, int64(window), e)
	}
}

// Bias adds to the logits of single tokens.
func Bias(biases map[int32]float32) Stage {
	return func(h uintptr, e *uintptr) int {
		var ids []int32
		var values []float32
		for id, value := range biases {
			ids, values = append(ids, id), append(values, value)
		}
		return capi.Sampler_bias(h, ids, values, e)
	}
}

// Temperature divides logits; 0 is Greedy.
func Temperature(t float64) Stage {
	return func(h uintptr, e *uintptr) int { return capi.Perigee_sampler_add_temperature(h, t, e) }
}

// TopK keeps the k greatest.
func TopK(k int) Stage {
	return func(h uintptr, e *uintptr) int { return capi.Perigee_sampler_add_top_k(h, int64(k), e) }
}

// TopP keeps the fewest of the greatest whose probabilities sum to at least p.
func TopP(p float64) Stage {
	return func(h uintptr, e *uintptr) int { return capi.Perigee_sampler_add_top_p(h, p, e) }
}

// MinP keeps those of at least p times the probability of the greatest.
func MinP(p float64) Stage {
	return func(h uintptr, e *uintptr) int { return capi.Perigee_sampler_add_min_p(h, p, e) }
}

// Greedy keeps the greatest alone.
func Greedy() Stage {
	return func(h uintptr, e *uintptr) int { return capi.Perigee_sampler_add_greedy(h, e) }
}

func ownSampler(h uintptr) *Sampler {
	s := &Sampler{h}
	runtime.SetFinalizer(s, (*Sampler).Close)
	return s
}

// NewSampler makes a chain; an empty one takes the greatest logit.
func (r *Runtime) NewSampler(seed uint64, stages ...Stage) (*Sampler, error) {
	if r.h == 0 {
		return nil, closed("runtime")
	}
	var h, e uintptr
	err := check(capi.Perigee_sampler_new(r.h, &h, &e), e)
	runtime.KeepAlive(r)
	if err != nil {
		return nil, err
	}
	s := ownSampler(h)
	capi.Perigee_sampler_set_seed(h, seed)
	for _, stage := range stages {
		if err := check(stage(h, &e), e); err != nil {
			s.Close()
			return nil, err
		}
	}
	return s, nil
}

// Clone copies chain, seed, place in the random stream, and history.
func (s *Sampler) Clone() (*Sampler, error) {
	if s.h == 0 {
		return nil, closed("sampler")
	}
	var h, e uintptr
	err := check(capi.Perigee_sampler_clone(s.h, &h, &e), e)
	runtime.KeepAlive(s)
	if err != nil {
		return nil, err
	}
	return ownSampler(h), nil
}

// Close frees the sampler.
func (s *Sampler) Close() error {
	if s.h != 0 {
		capi.Perigee_sampler_free(s.h)
		s.h = 0
		runtime.SetFinalizer(s, nil)
	}
	return nil
}

func (s *Sampler) raw() uintptr {
	if s == nil {
		return 0
	}
	return s.h
}

// Sample chooses a token, among those that can go on in the constraint (nil: all). The history is left alone.
func (s *Sampler) Sample(logits []float32, constraint *Constraint) (int32, error) {
	if s.h == 0 {
		return 0, closed("sampler")
	}
	var id int32
	var e uintptr
	err := check(capi.Perigee_sampler_sample_constrained(s.h, logits, constraint.raw(), &id, &e), e)
	runtime.KeepAlive(s)
	runtime.KeepAlive(constraint)
	return id, err
}

// Accept appends tokens to the history that penalties look at.
func (s *Sampler) Accept(ids ...int32) error {
	if s.h == 0 {
		return closed("sampler")
	}
	var e uintptr
	err := check(capi.Perigee_sampler_accept(s.h, ids, &e), e)
	runtime.KeepAlive(s)
	return err
}

// Reset forgets the history and goes to the start of the random stream.
func (s *Sampler) Reset() {
	if s.h != 0 {
		capi.Perigee_sampler_reset(s.h)
	}
	runtime.KeepAlive(s)
}

// Constraint is a place in a text that a JSON schema or a regular expression describes.
type Constraint struct{ h uintptr }

func (c *Constraint) raw() uintptr {
	if c == nil {
		return 0
	}
	return c.h
}

func ownConstraint(status int, h, e uintptr) (*Constraint, error) {
	if err := check(status, e); err != nil {
		return nil, err
	}
	c := &Constraint{h}
	runtime.SetFinalizer(c, (*Constraint).Close)
	return c, nil
}

// FromSchema is the start of a JSON text that is valid under a schema.
func (t *Tokenizer) FromSchema(schema string) (*Constraint, error) {
	if err := t.open(); err != nil {
		return nil, err
	}
	var h, e uintptr
	status := capi.Perigee_constraint_from_schema(t.h, schema, &h, &e)
	runtime.KeepAlive(t)
	return ownConstraint(status, h, e)
}

// FromRegex is the start of a text that a pattern matches as a whole.
func (t *Tokenizer) FromRegex(pattern string) (*Constraint, error) {
	if err := t.open(); err != nil {
		return nil, err
	}
	var h, e uintptr
	status := capi.Perigee_constraint_from_regex(t.h, pattern, &h, &e)
	runtime.KeepAlive(t)
	return ownConstraint(status, h, e)
}

// Clone is a place of its own at the same point.
func (c *Constraint) Clone() (*Constraint, error) {
	if c.h == 0 {
		return nil, closed("constraint")
	}
	var h, e uintptr
	status := capi.Perigee_constraint_clone(c.h, &h, &e)
	runtime.KeepAlive(c)
	return ownConstraint(status, h, e)
}

// Close frees the place.
func (c *Constraint) Close() error {
	if c.h != 0 {
		capi.Perigee_constraint_free(c.h)
		c.h = 0
		runtime.SetFinalizer(c, nil)
	}
	return nil
}

// Allowed gives the tokens that can go on: bit id % 64 of word id / 64, of count bits; a copy.
func (c *Constraint) Allowed() (words []uint64, count int, err error) {
	if c.h == 0 {
		return nil, 0, closed("constraint")
	}
	defer runtime.KeepAlive(c)
	n := make([]int64, 2)
	var e uintptr
	if err := check(capi.Constraint_allowed(c.h, n, &e), e); err != nil {
		return nil, 0, err
	}
	return append([]uint64(nil), capi.Words(n[0], (n[1]+63)/64)...), int(n[1]), nil
}

// Accept moves over a token.
func (c *Constraint) Accept(id int32) error {
	if c.h == 0 {
		return closed("constraint")
	}
	var e uintptr
	err := check(capi.Perigee_constraint_accept(c.h, int(id), &e), e)
	runtime.KeepAlive(c)
	return err
}

// Complete says whether the text may end here, and whether nothing else can follow.
func (c *Constraint) Complete() (mayEnd, whole bool) {
	defer runtime.KeepAlive(c)
	if c.h == 0 {
		return false, false
	}
	n := capi.Perigee_constraint_complete(c.h)
	return n != 0, n == 2
}
