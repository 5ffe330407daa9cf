package admin

import "errors"

// Error is a failure of a request that knows which status it deserves.
// Handlers return it; its message is the body of the answer, as plain text.
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

// badRequest returns an error of status 400 with that body.
func badRequest(body string) *Error { return &Error{Status: 400, Msg: body} }

var (
	// ErrGone is what writing to an answer returns when its client went away,
	// stopped reading or took too long. A handler returns it.
	ErrGone = errors.New("admin: the client is gone")

	// errHeadDone ends a handler whose answer needs no body.
	errHeadDone = errors.New("admin: the request asked for no body")

	// ErrAddressInUse is wrapped by what [Server.Listen] returns when another
	// program has the address.
	ErrAddressInUse = errors.New("address already in use")
)
