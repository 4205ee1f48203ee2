// Package capi is the raw layer: perigee.go and perigee_wrap.c are written by SWIG.
package capi

// #cgo pkg-config: perigee
// #cgo CFLAGS: -Wno-unused-function -Wno-unused-parameter -Wno-unused-variable
import "C"
