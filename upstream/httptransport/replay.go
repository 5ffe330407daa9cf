package httptransport

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"sync/atomic"
)

// replay is the body of a request. It keeps the beginning for retries. A nil
// replay is no body.
type replay struct {
	in     io.ReadCloser
	keep   bool
	kept   []byte
	again  bytes.Reader // what of kept is read again
	lost   bool         // more was read than fits
	ended  atomic.Bool  // it was read to its end
	broken atomic.Bool  // reading failed
	late   atomic.Bool  // because the client sends too slowly
	closed atomic.Bool
}

func newReplay(r *http.Request, keep bool) *replay {
	if r.Body == nil || r.Body == http.NoBody {
		return nil
	}
	return &replay{in: r.Body, keep: keep}
}

// Read implements [io.Reader].
func (b *replay) Read(p []byte) (int, error) {
	if b.again.Len() > 0 {
		return b.again.Read(p)
	}
	if b.closed.Load() {
		return 0, http.ErrBodyReadAfterClose
	}
	n, err := b.in.Read(p)
	if b.keep && len(b.kept)+n <= maxReplay {
		b.kept = append(b.kept, p[:n]...)
	} else if n > 0 {
		b.keep, b.lost, b.kept = false, true, nil
	}
	switch {
	case err == io.EOF:
		b.ended.Store(true)
	case errors.Is(err, http.ErrBodyReadAfterClose): // by the server, once its client needs no more of it
	case err != nil && !b.closed.Load():
		b.late.Store(errors.Is(err, os.ErrDeadlineExceeded))
		b.broken.Store(true)
	}
	return n, err
}

// Close closes the body, once the request needs it no more. It does not wait, unlike
// Close of the body of a server's request, which waits for a Read in progress and
// reads what the client has yet to send.
func (b *replay) Close() {
	if b == nil || b.closed.Swap(true) {
		return
	}
	if !b.ended.Load() {
		go func() { _ = b.in.Close() }()
		return
	}
	_ = b.in.Close()
}

// rewind starts over, and reports whether that is possible.
func (b *replay) rewind() bool {
	if b == nil {
		return true
	}
	if b.lost || b.broken.Load() {
		return false
	}
	b.again.Reset(b.kept)
	return true
}

// failed reports whether the client broke off the body.
func (b *replay) failed() bool { return b != nil && b.broken.Load() }
