// Package perigee runs the Kimi language models inside a Go program: a thin layer over the C library of that name.
//
// Handles may be closed in any order, and a finalizer closes those that were forgotten. Models and contexts may be used
// from any goroutine at once, a session by one at a time.
package perigee

import (
	"context"
	"runtime"
	"runtime/cgo"

	"perigee.example/perigee/internal/capi"
)

// Version of the library in use.
func Version() string { return capi.Perigee_version() }

// Option sets an option by its name and text, as the library lists them: threads, kernels, weights, context, chunk …
type Option struct{ Name, Value string }

// With is an Option.
func With(name, value string) Option { return Option{name, value} }

// raw makes the C object; 0 for no options. The caller frees it.
func raw(options []Option) (uintptr, error) {
	if len(options) == 0 {
		return 0, nil
	}
	var o, e uintptr
	if err := check(capi.Perigee_options_new(&o, &e), e); err != nil {
		return 0, err
	}
	for _, p := range options {
		if err := check(capi.Perigee_options_set_text(o, p.Name, p.Value, &e), e); err != nil {
			capi.Perigee_options_free(o)
			return 0, err
		}
	}
	return o, nil
}

// Runtime owns threads and kernels that models share: the library's context.
type Runtime struct{ h uintptr }

// NewRuntime makes one.
func NewRuntime(options ...Option) (*Runtime, error) { return NewRuntimeWith(nil, nil, options...) }

// NewRuntimeWith makes one with a log, which gets level (1 error … 4 all) and line on a goroutine that called in, and
// with kernels of the host; either may be nil.
func NewRuntimeWith(log func(level int, message string), kernels *KernelSet, options ...Option) (*Runtime, error) {
	o, err := raw(options)
	if err != nil {
		return nil, err
	}
	defer capi.Perigee_options_free(o)
	r := &Runtime{}
	var set, e uintptr
	if kernels != nil {
		set = kernels.h
	}
	var sink uint64
	if log != nil {
		sink = uint64(cgo.NewHandle(&capi.Log{Fn: log})) // released by the library, also on failure
	}
	err = check(capi.Context_new(o, sink, set, &r.h, &e), e)
	runtime.KeepAlive(kernels)
	if err != nil {
		return nil, err
	}
	runtime.SetFinalizer(r, (*Runtime).Close)
	return r, nil
}

// Close drops the handle; models made from it live on.
func (r *Runtime) Close() error {
	if r.h != 0 {
		capi.Perigee_context_free(r.h)
		r.h = 0
		runtime.SetFinalizer(r, nil)
	}
	return nil
}

// Threads that a step uses.
func (r *Runtime) Threads() int {
	defer runtime.KeepAlive(r)
	return int(capi.Perigee_context_threads(r.h))
}

// watch triggers a cancel handle when ctx ends. stop must be called; it waits for the goroutine and frees the handle.
func watch(ctx context.Context) (handle uintptr, stop func(), err error) {
	if ctx == nil || ctx.Done() == nil {
		return 0, func() {}, nil
	}
	var e uintptr
	if err := check(capi.Perigee_cancel_new(&handle, &e), e); err != nil {
		return 0, nil, err
	}
	if ctx.Err() != nil {
		capi.Perigee_cancel_trigger(handle)
	}
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-ctx.Done():
			capi.Perigee_cancel_trigger(handle)
		case <-over:
		}
	}()
	return handle, func() {
		close(over)
		<-done
		capi.Perigee_cancel_free(handle)
	}, nil
}
