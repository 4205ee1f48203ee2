package perigee

import (
	"context"
	"runtime"
	"runtime/cgo"

	"perigee.example/perigee/internal/capi"
)

// Model is a loaded checkpoint, shared by any number of sessions and goroutines.
type Model struct {
	h          uintptr
	vocabulary int
}

// Load makes a Runtime for this model alone and loads the checkpoint at path; options of every scope may be mixed.
func Load(path string, options ...Option) (*Model, error) {
	return LoadContext(context.Background(), path, nil, options...)
}

// LoadContext is Load with a context that cancels it and a progress callback (bytes done, bytes in all), which may be nil
// and stops the load by returning false.
func LoadContext(ctx context.Context, path string, progress func(done, total int64) bool, options ...Option) (*Model, error) {
	mine, theirs := split(options, scopeContext)
	r, err := NewRuntime(mine...)
	if err != nil {
		return nil, err
	}
	defer r.Close() // the model holds it
	return r.LoadContext(ctx, path, progress, theirs...)
}

// LoadContext loads a checkpoint under this runtime.
func (r *Runtime) LoadContext(ctx context.Context, path string, progress func(done, total int64) bool, options ...Option) (*Model, error) {
	if r.h == 0 {
		return nil, closed("runtime")
	}
	o, err := raw(options)
	if err != nil {
		return nil, err
	}
	defer capi.Perigee_options_free(o)
	cancel, stop, err := watch(ctx)
	if err != nil {
		return nil, err
	}
	defer stop()
	var callback *capi.Progress
	var handle cgo.Handle
	if progress != nil {
		callback = &capi.Progress{Fn: progress}
		handle = cgo.NewHandle(callback)
		defer handle.Delete()
	}
	m := &Model{}
	var e uintptr
	status := capi.Model_load(r.h, path, o, uint64(handle), cancel, &m.h, &e)
	runtime.KeepAlive(r)
	if callback != nil && callback.Panicked != nil {
		capi.Perigee_error_free(e)
		panic(callback.Panicked)
	}
	if err := check(status, e); err != nil {
		return nil, cause(ctx, err)
	}
	m.vocabulary = int(capi.Model_vocabulary(m.h))
	runtime.SetFinalizer(m, (*Model).Close)
	return m, nil
}

// cause prefers the context's own error to "cancelled".
func cause(ctx context.Context, err error) error {
	if e, ok := err.(*Error); ok && e.Status == ErrCancelled && ctx != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// Close drops the handle; sessions live on.
func (m *Model) Close() error {
	if m.h != 0 {
		capi.Perigee_model_free(m.h)
		m.h = 0
		runtime.SetFinalizer(m, nil)
	}
	return nil
}

// Info is what a host needs to know of a model.
type Info struct {
	Family                                         string
	Vocabulary, Hidden, Layers, KDALayers, Context int
	EndIDs                                         []int32
	WeightBytes, ResidentBytes, TokenBytes         int64
}

// Info of the model.
func (m *Model) Info() (Info, error) {
	if m.h == 0 {
		return Info{}, closed("model")
	}
	defer runtime.KeepAlive(m)
	var n [9]int64
	family := capi.Model_family(m.h)
	capi.Model_numbers(m.h, n[:])
	return Info{Family: family, Vocabulary: int(n[0]), Hidden: int(n[1]), Layers: int(n[2]), KDALayers: int(n[3]),
		Context: int(n[4]), WeightBytes: n[5], ResidentBytes: n[6], TokenBytes: n[7],
		EndIDs: append([]int32(nil), capi.Model_end_ids(m.h)...)}, nil
}
