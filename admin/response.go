package admin

import (
	"errors"
	"io"
	"runtime"
	"slices"
	"strconv"

	"github.com/statsd-admin/statsd-admin/internal/guard"
)

// Content types.
const (
	typeText   = "text/plain; charset=UTF-8"
	typeJSON   = "application/json"
	typeHTML   = "text/html; charset=UTF-8"
	typeBinary = "application/octet-stream"
	typeEvents = "text/event-stream"
)

// responseBuffer is the number of bytes of a response to buffer before sending. A
// response that fits is sent with its length and can still be replaced by an error.
const responseBuffer = 64 << 10

// compressFrom is the minimum size of responses to compress.
const compressFrom = 1 << 10

// transport sends one response to its client.
type transport interface {
	// begin sends or buffers the head. length is the length of the body, or -1 if
	// unknown; the body follows in calls of body until end.
	begin(w *Response, length int) error
	// body sends a chunk of the body, a followed by b, after the head if that was
	// buffered. It does not retain them.
	body(a, b []byte) error
	// end completes the response.
	end() error
	// abort ends the response so that the client sees that it is incomplete.
	abort()
	// hangUp closes the connection after the response.
	hangUp()
	// watch returns a channel that is closed when the client closes the connection or
	// its sending side, or when the server shuts down. It can cause the connection to
	// close after the response.
	watch(guard.Guard) <-chan struct{}
}

// Response is the response to a request. Handlers set its status and header fields
// before they write. It must only be used by the handler's goroutine.
type Response struct {
	server    *Server
	transport transport
	buf       []byte  // not sent yet; its capacity never grows
	pooled    *[]byte // the memory of buf

	status      int
	contentType string
	fields      []Field
	encodings   []string // values of Accept-Encoding
	withoutBody bool     // the answer to HEAD
	endless     bool
	ended       <-chan struct{} // an endless answer must end

	stage    stage
	err      error // of the transport; nothing is sent after it
	cut      bool  // the answer is incomplete
	encoding string
	encoder  compressor
	packed   packer
	sent     int64 // bytes of the body
	slots    slots // nil: not limited
	hasSlot  bool
}

type stage uint8

const (
	stageBuffer stage = iota // nothing was sent
	stageStream              // the head was sent, the body is on its way
	stageDone
)

// SetStatus sets the status. Default 200.
func (w *Response) SetStatus(status int) { w.status = status }

// SetType sets the content type. Default plain text.
func (w *Response) SetType(contentType string) { w.contentType = contentType }

// SetHeader sets a header field. Names are lower case. The value must not come from a
// request.
func (w *Response) SetHeader(name, value string) {
	for i := range w.fields {
		if w.fields[i].Name == name {
			w.fields[i].Value = value
			return
		}
	}
	w.fields = append(w.fields, Field{name, value})
}

// varyBy adds a request header to Vary.
func (w *Response) varyBy(name string) {
	for i := range w.fields {
		if f := &w.fields[i]; f.Name == "vary" {
			f.Value += ", " + name
			return
		}
	}
	w.SetHeader("vary", name)
}

// Endless makes the response a stream: it is neither compressed nor chunked, each
// Flush sends immediately, and there is no time limit as long as the client reads.
// The handler must return when the channel is closed, which happens when the server
// shuts down, or when the client closes the connection or its sending side.
func (w *Response) Endless() <-chan struct{} {
	if w.ended == nil {
		w.endless, w.ended = true, w.transport.watch(w.server.guard)
	}
	return w.ended
}

// Write appends to the body. It returns ErrGone if the client is gone; the handler
// should then return that error.
func (w *Response) Write(p []byte) (int, error) {
	if w.stage == stageBuffer {
		if len(w.buf)+len(p) <= cap(w.buf) {
			w.buf = append(w.buf, p...)
			return len(p), nil
		}
		w.commit()
	}
	w.put(p)
	if w.err != nil {
		return 0, w.err
	}
	// Large responses keep the processors busy. Yield, so that small ones do not wait
	// until the scheduler preempts this one.
	if len(p) >= responseBuffer/2 {
		runtime.Gosched()
	}
	return len(p), nil
}

// WriteString is Write for a string.
func (w *Response) WriteString(s string) (int, error) {
	if w.stage == stageBuffer && len(w.buf)+len(s) <= cap(w.buf) {
		w.buf = append(w.buf, s...)
		return len(s), nil
	}
	return w.Write([]byte(s))
}

// Flush sends everything written so far. After the first flush the response can no
// longer be replaced by an error.
func (w *Response) Flush() error {
	if w.stage == stageBuffer {
		w.commit()
	}
	if w.encoder != nil && w.err == nil {
		w.fail(w.encoder.Flush())
		w.packed.flush()
	}
	w.transmit(w.buf, nil)
	w.buf = w.buf[:0]
	return w.err
}

// text sends plain text.
func (w *Response) text(status int, body string) error {
	w.SetStatus(status)
	_, err := w.WriteString(body)
	return err
}

// all sends a body of a type.
func (w *Response) all(contentType string, body []byte) error {
	w.SetType(contentType)
	_, err := w.Write(body)
	return err
}

// json sends a JSON document.
func (w *Response) json(body []byte) error { return w.all(typeJSON, body) }

// fail records the first error of the transport.
func (w *Response) fail(err error) {
	if w.err == nil && err != nil {
		w.err = err
	}
}

// commit sends the head of a response of unknown length.
func (w *Response) commit() {
	pending := w.buf
	w.stage = stageStream
	if !w.endless {
		w.encode(len(pending) + compressFrom)
	}
	w.fail(w.transport.begin(w, -1))
	if w.withoutBody {
		w.fail(errHeadDone)
	}
	if w.encoder != nil && w.err == nil {
		w.buf = w.buf[:0]
		_, err := w.encoder.Write(pending)
		w.fail(err)
	}
}

// encode acquires an encoder if the client accepts one and the response, of at least
// that size, is worth compressing.
func (w *Response) encode(size int) {
	if size < compressFrom || !compressible(w.contentType) {
		return
	}
	encoding := chooseEncoding(w.encodings)
	if encoding == "" {
		return
	}
	w.packed.w = w
	if w.encoder = w.server.compressors.take(encoding, &w.packed); w.encoder != nil {
		w.encoding = encoding
		w.SetHeader("content-encoding", encoding)
		w.varyBy("accept-encoding")
	}
}

// put sends p once the head is sent.
func (w *Response) put(p []byte) {
	switch {
	case w.err != nil:
	case w.encoder != nil:
		_, err := w.encoder.Write(p)
		w.fail(err)
	default:
		w.send(p)
	}
}

// send appends p to the buffer and passes full chunks to the transport, each with its
// own deadline.
func (w *Response) send(p []byte) {
	for len(w.buf)+len(p) >= responseBuffer && w.err == nil {
		n := responseBuffer - len(w.buf)
		w.transmit(w.buf, p[:n])
		w.buf, p = w.buf[:0], p[n:]
	}
	if w.err == nil {
		w.buf = append(w.buf, p...)
	}
}

func (w *Response) transmit(a, b []byte) {
	if w.err != nil {
		return
	}
	w.releaseSlot()
	w.fail(w.transport.body(a, b))
	w.sent += int64(len(a) + len(b))
	if w.slots != nil && w.stage == stageStream && len(a)+len(b) >= responseBuffer/2 {
		w.slots <- struct{}{}
		w.hasSlot = true
	}
}

// slots limits the number of large responses rendered at once. One processor stays
// free for small responses and for StatsD input. A response releases its slot while a
// chunk is sent, so that slow clients hold none.
type slots chan struct{}

func newSlots(processors int) slots { return make(slots, max(1, processors-1)) }

func (w *Response) releaseSlot() {
	if w.hasSlot {
		w.hasSlot = false
		<-w.slots
	}
}

// finish completes the response of a handler that returned err. It returns the
// error to log.
func (w *Response) finish(err error) error {
	defer w.release()
	if w.stage == stageStream {
		return w.finishStream(err)
	}
	if err != nil {
		w.fault(err)
	}
	w.stage = stageDone
	body := w.buf
	w.encode(len(body))
	if w.encoder != nil {
		w.packed.keep = true
		_, err1 := w.encoder.Write(body)
		if err2 := w.encoder.Close(); err1 != nil || err2 != nil {
			return errors.Join(err1, err2)
		}
		body = w.packed.buf
	}
	w.fail(w.transport.begin(w, len(body)))
	if !w.withoutBody && len(body) > 0 {
		w.transmit(body, nil)
	}
	if w.err == nil {
		w.fail(w.transport.end())
	}
	return errors.Join(err, w.err)
}

func (w *Response) finishStream(err error) error {
	w.stage = stageDone
	if errors.Is(w.err, errHeadDone) {
		return nil
	}
	if err == nil && w.err == nil {
		if w.encoder != nil {
			w.fail(w.encoder.Close())
			w.packed.flush()
		}
		if len(w.buf) > 0 {
			w.transmit(w.buf, nil)
			w.buf = w.buf[:0]
		}
	}
	w.releaseSlot() // sending the rest may have to wait for the client
	if err == nil && w.err == nil {
		w.fail(w.transport.end())
	}
	if err != nil || w.err != nil {
		w.cut = true
		w.transport.abort()
	}
	return errors.Join(err, w.err)
}

// fault replaces the response with the one for err.
func (w *Response) fault(err error) {
	w.buf, w.contentType, w.status, w.endless = w.buf[:0], typeText, 500, false
	w.fields = w.fields[:0]
	var e *Error
	if !errors.As(err, &e) {
		w.buf = append(w.buf, "internal error\n"...)
		return
	}
	if e.Status != 0 {
		w.status = e.Status
	}
	w.buf = append(w.buf, e.Msg[:min(len(e.Msg), cap(w.buf))]...)
}

// release returns the response's buffers and encoder.
func (w *Response) release() {
	w.releaseSlot()
	w.server.buffers.Put(w.pooled)
	if w.encoder != nil {
		w.server.compressors.give(w.encoding, w.encoder)
	}
}

// packer receives the output of the encoder. It collects chunks worth sending, or the
// whole of a small response.
type packer struct {
	w    *Response
	buf  []byte
	keep bool
}

// Write implements io.Writer for the encoder.
func (p *packer) Write(b []byte) (int, error) {
	p.buf = append(p.buf, b...)
	if !p.keep && len(p.buf) >= responseBuffer/2 {
		p.flush()
	}
	return len(b), p.w.err
}

func (p *packer) flush() {
	for chunk := range slices.Chunk(p.buf, responseBuffer) {
		p.w.transmit(chunk, nil)
	}
	p.buf = p.buf[:0]
}

var _ io.StringWriter = (*Response)(nil)

// appendHead appends the head of a response. http10 and closing describe the
// connection. If length is -1, it is unknown and chunked selects how the end is
// marked.
func (w *Response) appendHead(dst []byte, length int, http10, chunked, closing bool) []byte {
	dst = append(dst, "HTTP/1.1 "...)
	dst = strconv.AppendInt(dst, int64(w.status), 10)
	dst = append(dst, ' ')
	dst = append(dst, reason(w.status)...)
	dst = append(dst, "\r\n"...)
	w.visitHead(func(name, value string) { dst = appendField(dst, name, value) })
	switch {
	case length >= 0:
		dst = append(dst, "content-length: "...)
		dst = strconv.AppendInt(dst, int64(length), 10)
		dst = append(dst, "\r\n"...)
	case chunked:
		dst = appendField(dst, "transfer-encoding", "chunked")
	}
	if closing {
		dst = appendField(dst, "connection", "close")
	} else if http10 {
		dst = appendField(dst, "connection", "keep-alive")
	}
	return append(dst, "\r\n"...)
}

// pagePolicy are the header fields of web pages.
var pagePolicy = [...]Field{
	{"x-frame-options", "DENY"},
	{"cross-origin-opener-policy", "same-origin"},
	{"referrer-policy", "same-origin"},
	{"permissions-policy", "camera=(), microphone=(), geolocation=()"},
	{"content-security-policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " +
		"connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'; " +
		"require-trusted-types-for 'script'; trusted-types 'none'"},
}

// visitHead visits the header fields that do not depend on the connection.
func (w *Response) visitHead(visit func(name, value string)) {
	visit("content-type", w.contentType)
	if !w.has("cache-control") {
		visit("cache-control", "no-cache, max-age=0")
	}
	visit("x-content-type-options", "nosniff")
	visit("cross-origin-resource-policy", "same-origin")
	if w.contentType == typeHTML {
		for _, f := range pagePolicy {
			visit(f.Name, f.Value)
		}
	}
	for _, f := range w.fields {
		visit(f.Name, f.Value)
	}
	visit("server", w.server.product)
	visit("date", w.server.now().UTC().Format("Mon, 02 Jan 2006 15:04:05 GMT"))
}

// header returns a header field, or "" if it is absent.
func (w *Response) header(name string) (found string) {
	w.visitHead(func(n, value string) {
		if n == name {
			found = value
		}
	})
	return found
}

func (w *Response) has(name string) bool {
	return slices.ContainsFunc(w.fields, func(f Field) bool { return f.Name == name })
}

func appendField(dst []byte, name, value string) []byte {
	dst = append(dst, name...)
	dst = append(dst, ": "...)
	dst = append(dst, value...)
	return append(dst, "\r\n"...)
}
