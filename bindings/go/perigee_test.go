package perigee

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"sort"
	"strings"
	"testing"
	"time"
)

var background = context.Background()

func golden(name string) string { return filepath.Join(os.Getenv("PERIGEE_FIXTURES"), "golden", name) }

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// expected is an int32 tensor of the expected values.
func expected(t *testing.T, name, tensor string) []int32 {
	t.Helper()
	file := must(os.ReadFile(filepath.Join(golden(name), "expected", "expected.safetensors")))
	size := binary.LittleEndian.Uint64(file)
	var header map[string]struct {
		Offsets [2]int `json:"data_offsets"`
	}
	var entries map[string]json.RawMessage
	if err := json.Unmarshal(file[8:8+size], &entries); err != nil {
		t.Fatal(err)
	}
	delete(entries, "__metadata__")
	if err := json.Unmarshal(must(json.Marshal(entries)), &header); err != nil {
		t.Fatal(err)
	}
	at := header[tensor].Offsets
	ids := make([]int32, (at[1]-at[0])/4)
	if err := binary.Read(bytes.NewReader(file[8+int(size)+at[0]:]), binary.LittleEndian, ids); err != nil {
		t.Fatal(err)
	}
	return ids
}

func open(t *testing.T, name string) (*Model, *Session) {
	t.Helper()
	m := must(Load(golden(name), With("threads", "1"), With("precision", "exact")))
	s := must(m.NewSession())
	t.Cleanup(func() { s.Close(); m.Close() })
	return m, s
}

func last(t *testing.T, s *Session, ids ...int32) []float32 {
	t.Helper()
	rows, err := s.Decode(background, ids, Last)
	if err != nil {
		t.Fatal(err)
	}
	return append([]float32(nil), rows[0]...)
}

func TestGoldenCases(t *testing.T) {
	for _, name := range []string{"kimi_k2", "kimi_k25", "kimi_k3", "kimi_linear", "moonlight"} {
		_, s := open(t, name)
		ids, greedy := expected(t, name, "ids"), expected(t, name, "greedy")
		var got []int32
		for logits := last(t, s, ids...); len(got) < len(greedy); logits = last(t, s, got[len(got)-1]) {
			got = append(got, must(Argmax(logits)))
		}
		if !reflect.DeepEqual(got, greedy) {
			t.Fatal(name, got, greedy)
		}
		s.Reset()
		got = nil
		g := must(s.Generate(background, ids, Generate{MaxTokens: len(greedy), NoDefaultStops: true}))
		for g.Next() {
			got = append(got, g.Step().ID)
		}
		if g.Err() != nil || g.Step().Finish != FinishLength || !reflect.DeepEqual(got, greedy) {
			t.Fatal(name, got, greedy, g.Err(), g.Step().Finish)
		}
		sampler := must(g.Sampler())
		sampler.Close()
		g.Close()
		g.Close()
		if _, err := g.Sampler(); err == nil {
			t.Fatal("a sampler of a closed generation")
		}
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestStateForkRewindFeed(t *testing.T) {
	m, s := open(t, "kimi_linear")
	r := must(NewRuntime())
	ids := expected(t, "kimi_linear", "ids")
	must(s.Decode(background, ids, None))
	sampler := must(r.NewSampler(7, Temperature(1)))
	fork := must(s.Fork())
	var state bytes.Buffer
	if n := must(s.SaveWith(&state, sampler)); n != int64(state.Len()) {
		t.Fatal(n, state.Len())
	}
	saved := append([]byte(nil), state.Bytes()...)
	logits := last(t, s, 1)
	id := must(sampler.Sample(logits, nil))
	if !reflect.DeepEqual(last(t, fork, 1), logits) {
		t.Fatal("fork")
	}
	other, loaded := must(m.NewSession()), must(r.NewSampler(0))
	must(other.LoadWith(&state, loaded))
	if !reflect.DeepEqual(other.Tokens(), ids) || !reflect.DeepEqual(last(t, other, 1), logits) || must(loaded.Sample(logits, nil)) != id {
		t.Fatal("state")
	}
	if _, err := other.ReadFrom(bytes.NewReader(saved[:len(saved)/2])); !errors.Is(err, ErrTruncated) {
		t.Fatal(err)
	}
	if other.Position() != len(ids)+1 {
		t.Fatal("a failed load changed the session")
	}
	if _, err := s.WriteTo(broken{}); err != io.ErrClosedPipe {
		t.Fatal(err)
	}
	rows, kept, err := s.Feed(background, append(append([]int32(nil), ids...), 1), Last)
	if err != nil || kept > len(ids) || !reflect.DeepEqual(rows[0], logits) {
		t.Fatal("feed", err, kept)
	}
	if err := s.Rewind(background, 0); err != nil || s.Position() != 0 {
		t.Fatal(err)
	}
}

func TestErrors(t *testing.T) {
	_, s := open(t, "kimi_k2")
	_, err := s.Decode(background, []int32{1 << 30}, Last)
	var e *Error
	if !errors.Is(err, ErrToken) || !errors.As(err, &e) || !strings.Contains(e.Message, "1073741824") {
		t.Fatal(err)
	}
	if _, err := Load("/nowhere"); !errors.Is(err, ErrNotFound) {
		t.Fatal(err)
	}
	if _, err := Load(golden("kimi_k2"), With("nothing", "1")); !errors.Is(err, ErrArgument) {
		t.Fatal(err)
	}
	s.Close()
	s.Close()
	if _, err := s.Decode(background, []int32{1}, Last); !errors.Is(err, ErrState) {
		t.Fatal(err)
	}
}

func TestCancelAndCallbacks(t *testing.T) {
	before := runtime.NumGoroutine()
	_, s := open(t, "kimi_k3")
	ended, cancel := context.WithCancel(background)
	cancel()
	if _, err := s.Decode(ended, []int32{1, 2}, Last); err != context.Canceled || s.Position() != 0 {
		t.Fatal(err)
	}
	g := must(s.Generate(ended, []int32{1}, Generate{}))
	for g.Next() {
	}
	if g.Step().Finish != FinishCancelled || g.Err() != context.Canceled {
		t.Fatal(g.Step(), g.Err())
	}
	g.Close()
	live, stop := context.WithCancel(background)
	if _, err := s.Decode(live, []int32{1, 2}, Last); err != nil {
		t.Fatal(err)
	}
	stop()
	if _, err := LoadContext(ended, golden("kimi_k3"), nil); err != context.Canceled {
		t.Fatal(err)
	}
	calls := 0
	must(LoadContext(background, golden("kimi_k3"), func(_, _ int64) bool { calls++; return true })).Close()
	if _, err := LoadContext(background, golden("kimi_k3"), func(_, _ int64) bool { return false }); !errors.Is(err, ErrCallback) || calls == 0 {
		t.Fatal(err, calls)
	}
	func() {
		defer func() {
			if recover() != "mine" {
				t.Fatal("the panic was lost")
			}
		}()
		LoadContext(background, golden("kimi_k3"), func(_, _ int64) bool { panic("mine") })
	}()
	for i := 0; i < 100 && runtime.NumGoroutine() > before; i++ {
		time.Sleep(time.Millisecond)
	}
	if n := runtime.NumGoroutine(); n > before {
		t.Fatal("goroutines left", n-before)
	}
}

func TestBatchQueuePrefixCache(t *testing.T) {
	m, a := open(t, "kimi_linear")
	ids, greedy := expected(t, "kimi_linear", "ids"), expected(t, "kimi_linear", "greedy")
	alone := last(t, a, ids...)
	b, c := must(m.NewSession()), must(m.NewSession())
	items := []Item{{Session: b, Tokens: ids}, {Session: c, Tokens: []int32{-1}}}
	if err := DecodeBatch(background, items); !errors.Is(err, ErrToken) {
		t.Fatal(err)
	}
	if items[0].Err != nil || !reflect.DeepEqual(items[0].Logits, alone) || !errors.Is(items[1].Err, ErrToken) {
		t.Fatal(items[0].Err, items[1].Err)
	}
	cache := must(m.NewPrefixCache(1 << 30))
	if err := cache.Put(b); err != nil || cache.Bytes() == 0 {
		t.Fatal(err)
	}
	if s := must(cache.Get(append(append([]int32(nil), ids...), 1))); s.Position() != len(ids) {
		t.Fatal(s.Position())
	}
	q := must(m.NewQueue(2))
	replies := map[int64][]int32{}
	for i := 0; i < 3; i++ {
		must(q.Submit(ids, Generate{MaxTokens: len(greedy), NoDefaultStops: true}, func(request int64, step Step, err error) bool {
			if step.ID >= 0 {
				replies[request] = append(replies[request], step.ID)
			}
			return err == nil
		}))
	}
	for left := 1; left > 0; left = must(q.Step()) {
	}
	for i := int64(1); i <= 3; i++ {
		if !reflect.DeepEqual(replies[i], greedy) {
			t.Fatal(i, replies[i])
		}
	}
	q.Close()
	q.Close()
}

func TestInspect(t *testing.T) {
	lines := 0
	r := must(NewRuntimeWith(func(level int, message string) { lines++ }, nil, With("log_level", "4")))
	d := must(r.Describe(golden("kimi_k3")))
	sum := int64(0)
	for _, c := range d.Components {
		sum += c.Total
	}
	if d.Family != "kimi_k3" || sum != d.Parameters || !must(r.Plan(golden("kimi_k3"))).Fits {
		t.Fatal(d.Family, sum, d.Parameters)
	}
	used := false
	for _, k := range must(r.Kernels()) {
		used = used || k.Op == "matmul" && k.InUse
	}
	m := must(r.LoadContext(background, os.Getenv("PERIGEE_STRAY_MODEL"), nil))
	if !used || lines == 0 || must(m.Info()).Family != "kimi_k3" {
		t.Fatal(used, lines)
	}
}

func TestKernelOfTheHost(t *testing.T) {
	ids, greedy := expected(t, "kimi_linear", "ids"), expected(t, "kimi_linear", "greedy")
	set := must(NewKernelSet())
	calls := 0
	err := set.Product("matmul_bf16_go", WeightBF16, func(w func(int) []byte, x, y func(int) []float32, rows, tokens int) bool {
		calls++
		for r := 0; r < rows; r++ {
			row := w(r)
			for token := 0; token < tokens; token++ {
				sum := 0.0
				for k, v := range x(token) {
					bits := uint32(row[2*k])<<16 | uint32(row[2*k+1])<<24
					sum += float64(math.Float32frombits(bits)) * float64(v)
				}
				y(token)[r] = float32(sum)
			}
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	r := must(NewRuntimeWith(nil, set))
	set.Close()
	s := must(must(r.LoadContext(background, golden("kimi_linear"), nil)).NewSession())
	if id := must(Argmax(last(t, s, ids...))); id != greedy[0] || calls == 0 {
		t.Fatal(id, greedy[0], calls)
	}
	set = must(NewKernelSet())
	set.Product("matmul_bf16_failing", WeightBF16, func(func(int) []byte, func(int) []float32, func(int) []float32, int, int) bool {
		panic("mine")
	})
	r = must(NewRuntimeWith(nil, set))
	s = must(must(r.LoadContext(background, golden("kimi_linear"), nil)).NewSession())
	if _, err := s.Decode(background, ids, Last); !errors.Is(err, ErrKernel) {
		t.Fatal(err)
	}
}

func TestPlugin(t *testing.T) {
	path := os.Getenv("PERIGEE_PLUGIN")
	r := must(NewRuntime(With("threads", "1"), With("plugins", path), With("trace_kernels", "1"), With("check_kernels", "1")))
	listed := -1
	for i, k := range must(r.Kernels()) {
		if k.Origin == path && k.Name == "matmul_bf16_example" && k.InUse {
			listed = i
		}
	}
	if listed < 0 {
		t.Fatal("the plugin's row is not in use")
	}
	s := must(must(r.LoadContext(background, golden("kimi_linear"), nil)).NewSession())
	if id := must(Argmax(last(t, s, expected(t, "kimi_linear", "ids")...))); id != expected(t, "kimi_linear", "greedy")[0] {
		t.Fatal(id)
	}
	c := must(r.KernelCheck())
	if c.Calls == 0 || c.Different != 0 || c.Skipped != 0 || c.Kernel != "" || c.Largest <= 0 || c.Largest > 1 {
		t.Fatal(c)
	}
	calls := map[string]int64{}
	for _, k := range must(r.KernelTrace()) {
		calls[k.Kernel] += k.Calls
		if k.Seconds <= 0 || k.Cols == 0 {
			t.Fatal(k)
		}
	}
	if calls["matmul_bf16_example"] == 0 || calls["rms_norm_example"] == 0 {
		t.Fatal(calls)
	}
	k := must(r.TimeKernel(listed, 2))
	if k.Seconds <= 0 || k.Tokens != 2 || k.MultiplyAdds != int64(2*k.Rows*k.Cols) {
		t.Fatal(k)
	}
	if _, err := r.TimeKernel(listed, 0); !errors.Is(err, ErrRange) {
		t.Fatal(err)
	}
	if _, err := must(NewRuntime()).KernelCheck(); !errors.Is(err, ErrState) {
		t.Fatal(err)
	}
	if _, err := NewRuntime(With("plugins", path+".none")); !errors.Is(err, ErrKernel) || !strings.Contains(err.Error(), ".none") {
		t.Fatal(err)
	}
}

func TestText(t *testing.T) {
	r := must(NewRuntime())
	k := must(r.OpenTokenizer(os.Getenv("PERIGEE_TEXT_MODEL")))
	said := "Grüße, 世界! <|im_end|>"
	ids := must(k.Encode(said))
	if string(must(k.Decode(ids, false))) != said {
		t.Fatal("decode")
	}
	d, streamed := must(k.NewDecoder(true)), ""
	for _, id := range ids {
		streamed += must(d.Push(id))
	}
	if streamed+must(d.Flush()) != said {
		t.Fatal(streamed)
	}
	chat := must(k.Render(`[{"role":"user","content":"Hi"}]`, "", ChatOptions{}))
	if !strings.Contains(chat.Text(), "Hi") || len(chat.IDs()) < 2 || len(must(chat.Segments())) < 2 {
		t.Fatal(chat.Text())
	}
	_, err := k.Render("[{", "", ChatOptions{})
	var e *Error
	if !errors.As(err, &e) || e.Status != ErrFormat || e.Offset < 0 {
		t.Fatal(err)
	}
	p := must(k.NewParser(chat))
	for _, id := range must(k.Encode("Hello")) {
		must(p.Push(id))
	}
	end := must(p.Finish())
	if end[len(end)-1].Kind != DeltaEnd || !strings.Contains(must(p.Message()), "Hello") {
		t.Fatal(end)
	}
	c := must(k.FromRegex("ab"))
	if c.Accept(must(k.Encode("7"))[0]) == nil {
		t.Fatal("7")
	}
	for _, id := range must(k.Encode("ab")) {
		words, _, err := c.Allowed()
		if err != nil || words[id/64]>>(id%64)&1 == 0 || c.Accept(id) != nil {
			t.Fatal(id, err)
		}
	}
	if mayEnd, _ := c.Complete(); !mayEnd {
		t.Fatal("not complete")
	}
	if _, err := k.FromSchema("{"); !errors.Is(err, ErrSchema) {
		t.Fatal(err)
	}
}

func TestSamplers(t *testing.T) {
	r := must(NewRuntime())
	logits := []float32{0.5, 3, 2, -1}
	if must(Argmax(logits)) != 1 {
		t.Fatal("argmax")
	}
	ids, values, err := r.TopK(logits, 2)
	if err != nil || ids[1] != 2 || values[0] != 3 {
		t.Fatal(ids, values, err)
	}
	s := must(r.NewSampler(0, Bias(map[int32]float32{1: -100}), TopK(1)))
	if must(s.Sample(logits, nil)) != 2 {
		t.Fatal("bias")
	}
	if _, err := r.NewSampler(0, TopP(2)); !errors.Is(err, ErrRange) {
		t.Fatal(err)
	}
	sum := 0.0
	for _, p := range must(LogProbabilities(logits, []int32{0, 1, 2, 3})) {
		sum += math.Exp(p)
	}
	if math.Abs(sum-1) > 1e-12 {
		t.Fatal(sum)
	}
}

// What the layer costs over the bare calls: pairs of steps on one session.
func TestOverhead(t *testing.T) {
	if testing.Short() {
		t.Skip("under instruments")
	}
	_, s := open(t, "kimi_k2")
	one := []int32{1}
	var differences []float64
	for i := 0; i < 400; i++ {
		start := time.Now()
		s.Reset()
		must(s.Decode(background, one, Last))
		middle := time.Now()
		s.bench(1)
		differences = append(differences, float64(middle.Sub(start)-time.Since(middle))/1e3)
	}
	sort.Float64s(differences)
	median := differences[len(differences)/2]
	t.Logf("overhead of a step: %.2f us", median)
	if median > 5 {
		t.Fatal(median)
	}
}
