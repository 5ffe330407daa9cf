package admin

import "errors"

// Error is a request failure with an HTTP status. Handlers return it; its message is
// the response body, as plain text.
type Error struct {
	Status int    // 0 means 500
	Msg    string // sent to the client as it is
	Err    error  // logged, never sent; may be nil
}

// Error returns the message, and the cause if there is one.
func (e *Error) Error() string {
	if e.Err != nil {
		return "admin: " + e.Msg + ": " + e.Err.Error()
	}
	return "admin: " + e.Msg
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

func badRequest(body string) *Error { return &Error{Status: 400, Msg: body} }

var (
	// ErrGone is returned by writes of a response whose client disconnected, stopped
	// reading or took too long. Handlers return it.
	ErrGone = errors.New("admin: the client is gone")

	// errHeadDone stops a handler whose response needs no body.
	errHeadDone = errors.New("admin: the request asked for no body")

	// ErrAddressInUse is wrapped by the error of [Server.Listen] when another program
	// uses the address.
	ErrAddressInUse = errors.New("address already in use")
)
