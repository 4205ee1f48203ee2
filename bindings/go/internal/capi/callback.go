package capi

// #include <stdint.h>
// #include <stddef.h>
import "C"

import (
	"io"
	"runtime/cgo"
	"unsafe"
)

// Progress holds a callback of a load and what it panicked with, if it did.
type Progress struct {
	Fn       func(done, total int64) bool
	Panicked any
}

//export perigeeGoProgress
func perigeeGoProgress(done, total C.int64_t, handle C.uintptr_t) (stop C.int) {
	p := cgo.Handle(handle).Value().(*Progress)
	defer func() { // a panic must not unwind through C frames
		if r := recover(); r != nil {
			p.Panicked, stop = r, 1
		}
	}()
	if !p.Fn(int64(done), int64(total)) {
		return 1
	}
	return 0
}

// Stream is a reader or a writer behind a C callback, with what went wrong in it.
type Stream struct {
	Reader   io.Reader
	Writer   io.Writer
	Err      error
	Panicked any
}

//export perigeeGoWrite
func perigeeGoWrite(data unsafe.Pointer, size C.size_t, handle C.uintptr_t) (stop C.int) {
	s := cgo.Handle(handle).Value().(*Stream)
	defer func() {
		if r := recover(); r != nil {
			s.Panicked, stop = r, 1
		}
	}()
	if _, s.Err = s.Writer.Write(unsafe.Slice((*byte)(data), int(size))); s.Err != nil {
		return 1
	}
	return 0
}

//export perigeeGoRead
func perigeeGoRead(data unsafe.Pointer, size C.size_t, handle C.uintptr_t) (n C.int64_t) {
	s := cgo.Handle(handle).Value().(*Stream)
	defer func() {
		if r := recover(); r != nil {
			s.Panicked, n = r, -1
		}
	}()
	got, err := s.Reader.Read(unsafe.Slice((*byte)(data), int(size)))
	for got == 0 && err == nil {
		got, err = s.Reader.Read(unsafe.Slice((*byte)(data), int(size)))
	}
	if got == 0 && err != io.EOF {
		s.Err = err
		return -1
	}
	return C.int64_t(got)
}

// Log receives lines of a log.
type Log struct {
	Fn func(level int, message string)
}

//export perigeeGoLog
func perigeeGoLog(level C.int, message *C.char, handle C.uintptr_t) {
	defer func() { _ = recover() }() // a log has nowhere to report it
	cgo.Handle(handle).Value().(*Log).Fn(int(level), C.GoString(message))
}

//export perigeeGoRelease
func perigeeGoRelease(handle C.uintptr_t) { cgo.Handle(handle).Delete() }

// Request is the callback of a queue's request; what it panics with goes to Panicked, which all of a queue share.
type Request struct {
	Fn       func(request int64, step, failure uintptr) bool
	Panicked *any
}

//export perigeeGoQueue
func perigeeGoQueue(request C.int64_t, step, failure C.uintptr_t, handle C.uintptr_t) (stop C.int) {
	q := cgo.Handle(handle).Value().(*Request)
	defer func() {
		if r := recover(); r != nil {
			*q.Panicked, stop = r, 1
		}
	}()
	if !q.Fn(int64(request), uintptr(step), uintptr(failure)) {
		return 1
	}
	return 0
}

// Trace sees the residual stream behind each layer.
type Trace struct {
	Fn func(layer, position, hidden int, values []float32) bool
}

//export perigeeGoTrace
func perigeeGoTrace(layer, position C.int64_t, rows, hidden C.size_t, values unsafe.Pointer, handle C.uintptr_t) (stop C.int) {
	t := cgo.Handle(handle).Value().(*Trace)
	defer func() {
		if recover() != nil {
			stop = 1 // the step fails
		}
	}()
	if !t.Fn(int(layer), int(position), int(hidden), unsafe.Slice((*float32)(values), int(rows*hidden))) {
		return 1
	}
	return 0
}

// Product is a kernel of the host.
type Product struct {
	Width int // bytes of a weight
	Fn    func(weights func(row int) []byte, x func(token int) []float32, y func(token int) []float32, rows, tokens int) bool
}

//export perigeeGoProduct
func perigeeGoProduct(handle C.uintptr_t, codes unsafe.Pointer, rowBytes, columns, count C.size_t, x unsafe.Pointer,
	ldx, m C.size_t, y unsafe.Pointer, ldy C.size_t) (failed C.int32_t) {
	p := cgo.Handle(handle).Value().(*Product)
	defer func() {
		if recover() != nil {
			failed = 1
		}
	}()
	weights := func(row int) []byte {
		return unsafe.Slice((*byte)(unsafe.Add(codes, row*int(rowBytes))), int(columns)*p.Width)
	}
	in := func(token int) []float32 {
		return unsafe.Slice((*float32)(unsafe.Add(x, token*int(ldx)*4)), int(columns))
	}
	out := func(token int) []float32 {
		return unsafe.Slice((*float32)(unsafe.Add(y, token*int(ldy)*4)), int(count))
	}
	if !p.Fn(weights, in, out, int(count), int(m)) {
		return 1
	}
	return 0
}
