package render

import "io"

// bufferSize bytes are collected before the writer is called. The buffer is
// larger by what one stat may add to it.
const (
	bufferSize = 64 << 10
	bufferRoom = 8 << 10
)

// output collects bytes for a writer.
type output struct {
	w   io.Writer
	buf []byte
	err error // of write
}

func newOutput(w io.Writer) *output {
	return &output{w: w, buf: make([]byte, 0, bufferSize+bufferRoom)}
}

// spill hands the buffer to the writer if it is full enough.
func (o *output) spill() error {
	if len(o.buf) < bufferSize {
		return o.err
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
