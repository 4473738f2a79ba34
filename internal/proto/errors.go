package proto

import (
	"errors"
	"fmt"
	"syscall"
)

// Error codes of the protocol.
const (
	CodeInvalidRequest = -32600 // malformed message, state, session; EINVAL, EACCES, EPERM
	CodeUnknownMethod  = -32601
	CodeInvalidParams  = -32602 // refused before anything was tried
	CodeInternal       = -32603 // everything else
	CodeNotFound       = -32004 // ENOENT of fs/*, unknown file handle
	CodeAttached       = -32010 // session attached to another connection
)

// Error is an error as it goes over the wire.
type Error struct {
	Code    int
	Message string
	Kind    string // data.kind, of process/start failures only
}

func (e *Error) Error() string { return e.Message }

// Errorf makes an Error of that code.
func Errorf(code int, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Invalid makes an Error for a request that cannot be served as it stands.
func Invalid(format string, args ...any) *Error { return Errorf(CodeInvalidRequest, format, args...) }

// BadParams makes an Error for params that were refused unseen.
func BadParams(format string, args ...any) *Error { return Errorf(CodeInvalidParams, format, args...) }

// WireError turns any error into the one that the peer gets. It is the only
// place where operating-system errors get a code.
func WireError(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	if no, ok := errors.AsType[syscall.Errno](err); ok {
		return Errorf(errnoCode(no), "%s", ErrnoText(no))
	}
	return Errorf(CodeInternal, "%s", err)
}

func errnoCode(no syscall.Errno) int {
	switch no {
	case syscall.ENOENT:
		return CodeNotFound
	case syscall.EINVAL, syscall.EACCES, syscall.EPERM:
		return CodeInvalidRequest
	}
	return CodeInternal
}

// errnoWords has the texts in which the reference differs from package syscall.
var errnoWords = map[syscall.Errno]string{
	syscall.EPERM:   "Operation not permitted",
	syscall.ENOENT:  "No such file or directory",
	syscall.E2BIG:   "Argument list too long",
	syscall.ENOEXEC: "Exec format error",
	syscall.EBADF:   "Bad file descriptor",
	syscall.EACCES:  "Permission denied",
	syscall.EEXIST:  "File exists",
	syscall.ENOTDIR: "Not a directory",
	syscall.EISDIR:  "Is a directory",
	syscall.EINVAL:  "Invalid argument",
	syscall.ENOSPC:  "No space left on device",
	syscall.EROFS:   "Read-only file system",

	syscall.ENOTEMPTY:    "Directory not empty",
	syscall.ENAMETOOLONG: "Filename too long",
	syscall.ELOOP:        "Symbolic link loop",
}

// ErrnoText renders an operating-system error as the reference does.
func ErrnoText(no syscall.Errno) string {
	text, ok := errnoWords[no]
	if !ok {
		text = no.Error()
	}
	return fmt.Sprintf("%s (os error %d)", text, int(no))
}
