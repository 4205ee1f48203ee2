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
