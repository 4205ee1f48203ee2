package perigee

import (
	"perigee.example/perigee/internal/capi"
)

// Status is the kind of a failure: a number of the C library. It is an error of its own, so that
// errors.Is(err, perigee.ErrTensor) works.
type Status int

func (s Status) Error() string { return capi.Perigee_status_text(int(s)) }

// Name is the name of the C constant.
func (s Status) Name() string { return capi.Perigee_status_name(int(s)) }

// The kinds of failure.
const (
	ErrArgument    Status = 10
	ErrRange       Status = 11
	ErrState       Status = 12
	ErrToken       Status = 13
	ErrContextFull Status = 14
	ErrBuffer      Status = 15
	ErrScope       Status = 16
	ErrMemory      Status = 30
	ErrIO          Status = 31
	ErrNotFound    Status = 32
	ErrSystem      Status = 33
	ErrDiskFull    Status = 34
	ErrFormat      Status = 50
	ErrConfig      Status = 51
	ErrTensor      Status = 52
	ErrMismatch    Status = 53
	ErrVersion     Status = 54
	ErrChecksum    Status = 55
	ErrText        Status = 56
	ErrSchema      Status = 57
	ErrTruncated   Status = 58
	ErrCancelled   Status = 70
	ErrNotFinite   Status = 71
	ErrCallback    Status = 72
	ErrKernel      Status = 73
	ErrUnsupported Status = 90
	ErrInternal    Status = 91
)

// Error is a failed call: what kind, a sentence, and what it was about ("" and -1 where that does not apply).
type Error struct {
	Status  Status
	Message string
	Tensor  string
	File    string
	Offset  int64
	Layer   int64
}

func (e *Error) Error() string { return "perigee: " + e.Message }

// Unwrap gives the status, for errors.Is.
func (e *Error) Unwrap() error { return e.Status }

func copyError(e uintptr) error {
	made := &Error{Status: Status(capi.Perigee_error_status(e)), Offset: -1, Layer: -1}
	made.Message = capi.Perigee_error_message(e)
	made.Tensor = capi.Perigee_error_tensor(e)
	made.File = capi.Perigee_error_file(e)
	made.Offset = capi.Perigee_error_offset(e)
	made.Layer = capi.Perigee_error_layer(e)
	return made
}

// check turns a status and the C error object into a Go error, and frees the object.
func check(status int, e uintptr) error {
	if status == 0 {
		return nil
	}
	if e == 0 {
		return &Error{Status: Status(status), Message: Status(status).Error(), Offset: -1, Layer: -1}
	}
	made := copyError(e)
	capi.Perigee_error_free(e)
	return made
}

func closed(what string) error {
	return &Error{Status: ErrState, Message: what + " is closed", Offset: -1, Layer: -1}
}
