package render

import (
	"io"
	"slices"
)

// bufferSize bytes are collected before the writer is called. The buffer is
// larger by what one stat may add to it. The first buffer is smaller: the large one would
// take most of the time of an answer without stats.
const (
	bufferSize  = 64 << 10
	bufferRoom  = 8 << 10
	bufferFirst = 16 << 10
)

// output collects bytes for a writer.
type output struct {
	w   io.Writer
	buf []byte
	at  int   // the size from which spill has something to do
	err error // of write
}

func newOutput(w io.Writer) *output {
	return &output{w: w, buf: make([]byte, 0, bufferFirst), at: bufferFirst * 3 / 4}
}

// spill hands the buffer to the writer if it is full enough.
func (o *output) spill() error {
	if len(o.buf) < o.at {
		return o.err
	}
	return o.full()
}

// full makes the buffer larger if it is small, and hands it to the writer otherwise.
func (o *output) full() error {
	if o.at < bufferSize {
		o.at = bufferSize
		o.buf = slices.Grow(o.buf, max(0, bufferSize+bufferRoom-len(o.buf)))
		return o.spill()
	}
	return o.flush()
}

// flush hands the buffer to the writer.
func (o *output) flush() error {
	if o.err != nil {
		return o.err
	}
	_, err := o.w.Write(o.buf)
	o.buf = o.buf[:0]
	return err
}

// write adds b, which may be larger than the buffer.
func (o *output) write(b []byte) {
	for len(b) > 0 && o.err == nil {
		n := min(len(b), max(0, bufferSize-len(o.buf)))
		o.buf = append(o.buf, b[:n]...)
		b = b[n:]
		o.err = o.spill()
	}
}
