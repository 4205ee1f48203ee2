package perigee

import (
	"context"
	"io"
	"runtime"
	"runtime/cgo"

	"perigee.example/perigee/internal/capi"
)

// Which positions of a step get logits.
type Which int

// None, the last token's, or every token's.
const (
	None Which = 0
	Last Which = 1
	All  Which = 2
)

// Session is the state of one sequence; one goroutine at a time.
type Session struct {
	h          uintptr
	vocabulary int
}

// NewSession makes an empty session.
func (m *Model) NewSession(options ...Option) (*Session, error) {
	if m.h == 0 {
		return nil, closed("model")
	}
	o, err := raw(options)
	if err != nil {
		return nil, err
	}
	defer capi.Perigee_options_free(o)
	var h, e uintptr
	status := capi.Perigee_session_new(m.h, o, &h, &e)
	runtime.KeepAlive(m)
	if err := check(status, e); err != nil {
		return nil, err
	}
	return adopt(h, m.vocabulary), nil
}

func adopt(h uintptr, vocabulary int) *Session {
	s := &Session{h, vocabulary}
	runtime.SetFinalizer(s, (*Session).Close)
	return s
}

// Close frees the session.
func (s *Session) Close() error {
	if s.h != 0 {
		capi.Perigee_session_free(s.h)
		s.h = 0
		runtime.SetFinalizer(s, nil)
	}
	return nil
}

// Position is the number of tokens taken in.
func (s *Session) Position() int {
	defer runtime.KeepAlive(s)
	if s.h == 0 {
		return 0
	}
	return int(capi.Perigee_session_position(s.h))
}

// Reset forgets everything.
func (s *Session) Reset() {
	if s.h != 0 {
		capi.Perigee_session_reset(s.h)
	}
	runtime.KeepAlive(s)
}

// Decode takes in tokens. The rows of logits are views of the session's memory, valid until its next call.
func (s *Session) Decode(ctx context.Context, tokens []int32, which Which) ([][]float32, error) {
	if s.h == 0 {
		return nil, closed("session")
	}
	cancel, stop, err := watch(ctx)
	if err != nil {
		return nil, err
	}
	defer stop()
	var view, rows uint64
	var e uintptr
	status := capi.Decode_step(s.h, tokens, int(which), &view, &rows, cancel, &e)
	runtime.KeepAlive(s)
	if err := check(status, e); err != nil {
		return nil, cause(ctx, err)
	}
	return s.rows(view, rows), nil
}

func (s *Session) rows(view, rows uint64) [][]float32 {
	if view == 0 {
		return nil
	}
	all := capi.Floats(view, rows*uint64(s.vocabulary))
	out := make([][]float32, rows)
	for i := range out {
		out[i] = all[i*s.vocabulary : (i+1)*s.vocabulary : (i+1)*s.vocabulary]
	}
	return out
}

// Feed makes the session hold exactly tokens, keeping the longest prefix that it has, whose length is kept.
func (s *Session) Feed(ctx context.Context, tokens []int32, which Which) (logits [][]float32, kept int, err error) {
	if s.h == 0 {
		return nil, 0, closed("session")
	}
	cancel, stop, err := watch(ctx)
	if err != nil {
		return nil, 0, err
	}
	defer stop()
	var view, rows, k uint64
	var e uintptr
	status := capi.Session_feed(s.h, tokens, int(which), &view, &rows, &k, cancel, &e)
	runtime.KeepAlive(s)
	if err := check(status, e); err != nil {
		return nil, 0, cause(ctx, err)
	}
	return s.rows(view, rows), int(k), nil
}

// Tokens taken in so far, copied.
func (s *Session) Tokens() []int32 {
	defer runtime.KeepAlive(s)
	if s.h == 0 {
		return nil
	}
	return append([]int32(nil), capi.Session_tokens(s.h)...)
}

// Fork makes a second session at the same position.
func (s *Session) Fork() (*Session, error) {
	if s.h == 0 {
		return nil, closed("session")
	}
	var h, e uintptr
	status := capi.Perigee_session_fork(s.h, &h, &e)
	runtime.KeepAlive(s)
	if err := check(status, e); err != nil {
		return nil, err
	}
	return adopt(h, s.vocabulary), nil
}

// Rewind goes back to an earlier position, exactly or not at all.
func (s *Session) Rewind(ctx context.Context, position int) error {
	if s.h == 0 {
		return closed("session")
	}
	cancel, stop, err := watch(ctx)
	if err != nil {
		return err
	}
	defer stop()
	var nearest int64
	var e uintptr
	status := capi.Perigee_session_rewind(s.h, int64(position), &nearest, cancel, &e)
	runtime.KeepAlive(s)
	return cause(ctx, check(status, e))
}

// WriteTo saves the state.
func (s *Session) WriteTo(w io.Writer) (int64, error) { return s.SaveWith(w, nil) }

// SaveWith saves the state and, unless nil, a sampler.
func (s *Session) SaveWith(w io.Writer, sampler *Sampler) (int64, error) {
	if s.h == 0 {
		return 0, closed("session")
	}
	counter := &countingWriter{w: w}
	stream := &capi.Stream{Writer: counter}
	err := s.stream(stream, func(handle uint64, e *uintptr) int { return capi.State_save_to(s.h, sampler.raw(), handle, e) })
	return counter.n, err
}

// ReadFrom loads a state; on failure the session is unchanged.
func (s *Session) ReadFrom(r io.Reader) (int64, error) { return s.LoadWith(r, nil) }

// LoadWith loads a state and, unless nil, the sampler that was saved with it.
func (s *Session) LoadWith(r io.Reader, sampler *Sampler) (int64, error) {
	if s.h == 0 {
		return 0, closed("session")
	}
	counter := &countingReader{r: r}
	stream := &capi.Stream{Reader: counter}
	err := s.stream(stream, func(handle uint64, e *uintptr) int { return capi.State_load_from(s.h, sampler.raw(), handle, e) })
	return counter.n, err
}

func (s *Session) stream(stream *capi.Stream, call func(handle uint64, e *uintptr) int) error {
	handle := cgo.NewHandle(stream)
	defer handle.Delete()
	var e uintptr
	status := call(uint64(handle), &e)
	runtime.KeepAlive(s)
	err := check(status, e)
	if stream.Panicked != nil {
		panic(stream.Panicked)
	}
	if stream.Err != nil {
		return stream.Err
	}
	return err
}

// SaveFile saves the state atomically.
func (s *Session) SaveFile(path string) error {
	if s.h == 0 {
		return closed("session")
	}
	var e uintptr
	status := capi.Perigee_state_save_file(s.h, 0, path, &e)
	runtime.KeepAlive(s)
	return check(status, e)
}

// LoadFile loads a state; on failure the session is unchanged.
func (s *Session) LoadFile(path string) error {
	if s.h == 0 {
		return closed("session")
	}
	var e uintptr
	status := capi.Perigee_state_load_file(s.h, 0, path, &e)
	runtime.KeepAlive(s)
	return check(status, e)
}

type countingWriter struct {
	w io.Writer
	n int64
}

func (c *countingWriter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}

type countingReader struct {
	r io.Reader
	n int64
}

func (c *countingReader) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n += int64(n)
	return n, err
}

// bench makes bare steps in C, to measure by.
func (s *Session) bench(times int) bool { return capi.Bench_steps(s.h, 1, times) == 0 }
