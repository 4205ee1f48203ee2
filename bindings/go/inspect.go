package perigee

import (
	"runtime"
	"runtime/cgo"

	"perigee.example/perigee/internal/capi"
)

// Plan is what a load and its sessions would take, in bytes.
type Plan struct {
	DiskBytes, ResidentBytes, RelaidBytes, TableBytes, TokenBytes, SessionFixedBytes, SessionTokenBytes int64
	CacheBlockTokens, ScratchBytes, Chunk, Context, AvailableBytes                                      int64
	Mapped, Fits                                                                                        bool
}

// Plan works out what loading path takes, without reading weights.
func (r *Runtime) Plan(path string, options ...Option) (Plan, error) {
	if r.h == 0 {
		return Plan{}, closed("runtime")
	}
	o, err := raw(options)
	if err != nil {
		return Plan{}, err
	}
	defer capi.Perigee_options_free(o)
	n := make([]int64, 14)
	var e uintptr
	err = check(capi.Model_plan(r.h, path, o, n, &e), e)
	runtime.KeepAlive(r)
	return Plan{n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8], n[9], n[10], n[11], n[12] != 0, n[13] != 0}, err
}

// Component is one kind of tensor, counted over the layers that have it; -1 on disk where there is a config alone.
type Component struct {
	Name, Title, Formula, Shape, Stored                              string
	PerInstance, Instances, Total, Active, DiskParameters, DiskBytes int64
}

// Description has the components of a model with exact counts.
type Description struct {
	Family                                                                                 string
	Parameters, Active, DiskParameters, DiskBytes, Layers, KDALayers, MLALayers, MoELayers int64
	Components                                                                             []Component
}

// Describe a checkpoint folder or a config.json.
func (r *Runtime) Describe(path string) (Description, error) {
	var out Description
	if r.h == 0 {
		return out, closed("runtime")
	}
	var d, e uintptr
	err := check(capi.Perigee_model_describe(r.h, path, &d, &e), e)
	runtime.KeepAlive(r)
	if err != nil {
		return out, err
	}
	defer capi.Perigee_description_free(d)
	n := make([]int64, 16)
	if err := check(capi.Totals(d, n, &e), e); err != nil {
		return out, err
	}
	out = Description{texts(n), n[2], n[3], n[4], n[5], n[6], n[7], n[8], n[9], nil}
	for i := 0; i < int(capi.Perigee_description_count(d)); i++ {
		if err := check(capi.Component_at(d, i, n, &e), e); err != nil {
			return out, err
		}
		out.Components = append(out.Components, Component{texts(n), texts(n[2:]), texts(n[4:]), texts(n[6:]), texts(n[8:]),
			n[10], n[11], n[12], n[13], n[14], n[15]})
	}
	return out, nil
}

// Kernel is a row of the kernel table.
type Kernel struct {
	Name, Op, Weight, ISA, Origin, Numerics, Precision string
	ErrorBound                                         float64
	Deterministic, InUse                               bool
}

// Kernels lists the table, rows that are not called included.
func (r *Runtime) Kernels() ([]Kernel, error) {
	if r.h == 0 {
		return nil, closed("runtime")
	}
	defer runtime.KeepAlive(r)
	all := make([]Kernel, capi.Perigee_context_kernel_count(r.h))
	n, f := make([]int64, 16), make([]float64, 1)
	for i := range all {
		var e uintptr
		if err := check(capi.Kernel_at(r.h, i, n, f, &e), e); err != nil {
			return nil, err
		}
		all[i] = Kernel{texts(n), texts(n[2:]), texts(n[4:]), texts(n[6:]), texts(n[8:]), texts(n[10:]), texts(n[12:]),
			f[0], n[14] != 0, n[15] != 0}
	}
	return all, nil
}

// Weight is a stored form that a kernel of the host can be for.
type Weight int

// Numbers of the C library.
const (
	WeightF32  Weight = 1
	WeightF16  Weight = 2
	WeightBF16 Weight = 3
)

// KernelTrace has the calls of one function of a kernel with one shape.
type KernelTrace struct {
	Kernel, Function, Op string
	Rows, Cols, Tokens   int
	Calls                int64
	Seconds              float64
}

// KernelTrace lists what was called so far, for a runtime with the option trace_kernels.
func (r *Runtime) KernelTrace() ([]KernelTrace, error) {
	if r.h == 0 {
		return nil, closed("runtime")
	}
	defer runtime.KeepAlive(r)
	all := make([]KernelTrace, capi.Perigee_context_trace_count(r.h))
	n, f := make([]int64, 10), make([]float64, 1)
	for i := range all {
		var e uintptr
		if err := check(capi.Kernel_trace(r.h, i, n, f, &e), e); err != nil {
			return nil, err
		}
		all[i] = KernelTrace{texts(n), texts(n[2:]), texts(n[4:]), int(n[6]), int(n[7]), int(n[8]), n[9], f[0]}
	}
	return all, nil
}

// KernelCheck is the outcome of running each call through a scalar kernel too. Of the first difference, where there is
// one, it says kernel, sizes, place in the output and both values.
type KernelCheck struct {
	Calls, Skipped, Different               int64
	Largest                                 float64
	Kernel, Reference, Op, Function, Output string
	Rows, Cols, Tokens, Index, Width        int
	Value, Expected, Allowed                float64
}

// KernelCheck is for a runtime with the option check_kernels.
func (r *Runtime) KernelCheck() (KernelCheck, error) {
	if r.h == 0 {
		return KernelCheck{}, closed("runtime")
	}
	defer runtime.KeepAlive(r)
	n, f := make([]int64, 18), make([]float64, 4)
	var e uintptr
	if err := check(capi.Kernel_check(r.h, n, f, &e), e); err != nil {
		return KernelCheck{}, err
	}
	return KernelCheck{n[0], n[1], n[2], f[0], texts(n[3:]), texts(n[5:]), texts(n[7:]), texts(n[9:]), texts(n[11:]),
		int(n[13]), int(n[14]), int(n[15]), int(n[16]), int(n[17]), f[1], f[2], f[3]}, nil
}

// KernelTiming says how long one call of a kernel takes on one thread, for random data.
type KernelTiming struct {
	Rows, Cols, Tokens  int
	Seconds             float64
	Bytes, MultiplyAdds int64
}

// TimeKernel times row index of Kernels with that many rows of activations, 1 to 256.
func (r *Runtime) TimeKernel(index, tokens int) (KernelTiming, error) {
	if r.h == 0 {
		return KernelTiming{}, closed("runtime")
	}
	defer runtime.KeepAlive(r)
	n, f := make([]int64, 5), make([]float64, 1)
	var e uintptr
	if err := check(capi.Kernel_time(r.h, index, tokens, n, f, &e), e); err != nil {
		return KernelTiming{}, err
	}
	return KernelTiming{int(n[0]), int(n[1]), int(n[2]), f[0], n[3], n[4]}, nil
}

// KernelSet has kernels of the host's own, for prototypes.
type KernelSet struct{ h uintptr }

// NewKernelSet makes an empty set.
func NewKernelSet() (*KernelSet, error) {
	k := &KernelSet{}
	var e uintptr
	if err := check(capi.Perigee_kernel_set_new(&k.h, &e), e); err != nil {
		return nil, err
	}
	runtime.SetFinalizer(k, (*KernelSet).Close)
	return k, nil
}

// Close drops the handle; contexts that were made with the set keep it.
func (k *KernelSet) Close() error {
	if k.h != 0 {
		capi.Perigee_kernel_set_free(k.h)
		k.h = 0
		runtime.SetFinalizer(k, nil)
	}
	return nil
}

// Product adds a product for weights of one form, which goes before the built-in ones. f gets rows of weights as they
// are stored and rows of activations, and fills in rows of results: y(token)[row]. False or a panic fails the step.
func (k *KernelSet) Product(name string, weight Weight,
	f func(weights func(row int) []byte, x, y func(token int) []float32, rows, tokens int) bool) error {
	if k.h == 0 {
		return closed("kernel set")
	}
	width := 2
	if weight == WeightF32 {
		width = 4
	}
	product := &capi.Product{Width: width, Fn: func(w func(int) []byte, x, y func(int) []float32, rows, tokens int) bool {
		return f(w, x, y, rows, tokens)
	}}
	handle := cgo.NewHandle(product) // released by the library, also on failure
	var e uintptr
	err := check(capi.Kernel_add(k.h, name, int(weight), uint64(handle), &e), e)
	runtime.KeepAlive(k)
	return err
}

// Statistics are counters of a session.
type Statistics struct {
	Tokens, Steps, WeightBytes, ExpertReads, CacheHits, MemoryBytes int64
	Seconds, WaitSeconds                                            float64
}

// Statistics since the session was made.
func (s *Session) Statistics() (Statistics, error) {
	if s.h == 0 {
		return Statistics{}, closed("session")
	}
	n, f := make([]int64, 6), make([]float64, 2)
	var e uintptr
	err := check(capi.Session_counters(s.h, n, f, &e), e)
	runtime.KeepAlive(s)
	return Statistics{n[0], n[1], n[2], n[3], n[4], n[5], f[0], f[1]}, err
}

// SetTrace shows the residual stream behind each layer; nil removes it. False or a panic fails the step.
func (s *Session) SetTrace(f func(layer, position, hidden int, values []float32) bool) {
	if s.h == 0 {
		return
	}
	if f == nil {
		capi.Session_trace(s.h, 0)
	} else {
		capi.Session_trace(s.h, uint64(cgo.NewHandle(&capi.Trace{Fn: f})))
	}
	runtime.KeepAlive(s)
}
