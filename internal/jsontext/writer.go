package jsontext

import (
	"io"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"
)

// Writer appends one JSON document to a buffer:
//
//	var w jsontext.Writer
//	w.BeginObject()
//	w.Key("allocated").Uint64(41943040)
//	w.EndObject()
//	w.Bytes()
//
// gives
//
//	{
//	 "allocated": "41943040"
//	}
//
// The zero value is ready to use and keeps the document until [Writer.Bytes]; a
// Writer made by [To] streams it. A Writer does not check the order of calls: a value
// must follow each key, and ends must match beginnings.
type Writer struct {
	buf   []byte
	depth int
	dst   io.Writer // nil: the document is kept
	err   error     // of dst; nothing is written after it
	// empty: the innermost object or list has no content yet.
	empty, keyed bool
}

// pieceBytes is the size at which collected data is sent.
const pieceBytes = 32 << 10

// To returns a Writer that sends the document to dst in chunks of some ten kilobytes.
// It buffers no more than that and the longest string.
func To(dst io.Writer) *Writer {
	return &Writer{dst: dst, buf: make([]byte, 0, pieceBytes+pieceBytes/8)}
}

// Bytes returns the document with a trailing newline.
func (w *Writer) Bytes() []byte { return append(w.buf, '\n') }

// Finish sends the rest of the document and a newline, and returns the first error of
// the destination. Use it with a Writer made by [To].
func (w *Writer) Finish() error {
	w.buf = append(w.buf, '\n')
	w.send()
	return w.err
}

// Err returns the first error of the destination. Later output is lost, so long
// writes should check it from time to time.
func (w *Writer) Err() error { return w.err }

func (w *Writer) send() {
	if w.err == nil {
		_, w.err = w.dst.Write(w.buf)
	}
	w.buf = w.buf[:0]
}

// next starts the line of a member or element.
func (w *Writer) next() {
	if w.depth == 0 {
		return
	}
	if w.dst != nil && len(w.buf) >= pieceBytes {
		w.send()
	}
	if !w.empty {
		w.buf = append(w.buf, ',')
	}
	w.empty = false
	w.newline()
}

func (w *Writer) newline() {
	w.buf = append(w.buf, '\n')
	for range w.depth {
		w.buf = append(w.buf, ' ')
	}
}

// value is called before each value.
func (w *Writer) value() {
	if w.keyed {
		w.keyed = false
		return
	}
	w.next()
}

func (w *Writer) begin(open byte) {
	w.value()
	w.buf = append(w.buf, open)
	w.depth++
	w.empty = true
}

func (w *Writer) end(closing byte) {
	w.depth--
	if !w.empty {
		w.newline()
	}
	w.empty = false
	w.buf = append(w.buf, closing)
}

// BeginObject starts an object.
func (w *Writer) BeginObject() { w.begin('{') }

// EndObject ends the innermost object.
func (w *Writer) EndObject() { w.end('}') }

// BeginList starts a list.
func (w *Writer) BeginList() { w.begin('[') }

// EndList ends the innermost list.
func (w *Writer) EndList() { w.end(']') }

// Key writes the name of a member and returns w for the value.
func (w *Writer) Key(name string) *Writer {
	w.next()
	w.buf = AppendString(w.buf, name)
	w.buf = append(w.buf, ": "...)
	w.keyed = true
	return w
}

// String writes a string.
func (w *Writer) String(s string) {
	w.value()
	w.buf = AppendString(w.buf, s)
}

// Strings writes a list of strings.
func (w *Writer) Strings(list []string) {
	w.BeginList()
	for _, s := range list {
		w.String(s)
	}
	w.EndList()
}

// Bool writes true or false.
func (w *Writer) Bool(b bool) {
	w.value()
	w.buf = strconv.AppendBool(w.buf, b)
}

// Uint32 writes a number.
func (w *Writer) Uint32(n uint32) {
	w.value()
	w.buf = strconv.AppendUint(w.buf, uint64(n), 10)
}

// Int32 writes a number.
func (w *Writer) Int32(n int32) {
	w.value()
	w.buf = strconv.AppendInt(w.buf, int64(n), 10)
}

// Uint64 writes a 64-bit number, which is a string in JSON.
func (w *Writer) Uint64(n uint64) {
	w.value()
	w.buf = append(w.buf, '"')
	w.buf = strconv.AppendUint(w.buf, n, 10)
	w.buf = append(w.buf, '"')
}

// Int64 writes a 64-bit number, which is a string in JSON.
func (w *Writer) Int64(n int64) {
	w.value()
	w.buf = append(w.buf, '"')
	w.buf = strconv.AppendInt(w.buf, n, 10)
	w.buf = append(w.buf, '"')
}

// Float writes a number in the shortest form that parses as the same number with that
// many bits.
func (w *Writer) Float(f float64, bits int) {
	w.value()
	w.buf = appendNumber(w.buf, f, bits)
}

// Seconds writes a duration whose seconds may not fit in a time.Duration.
func (w *Writer) Seconds(seconds int64, nanos int32) {
	w.value()
	w.buf = append(w.buf, '"')
	if seconds < 0 || nanos < 0 {
		w.buf = append(w.buf, '-')
	}
	w.buf = strconv.AppendUint(w.buf, magnitude(seconds), 10)
	w.buf = appendDecimals(w.buf, int(min(magnitude(int64(nanos)), 999_999_999)))
	w.buf = append(w.buf, 's', '"')
}

func magnitude(n int64) uint64 {
	if n < 0 {
		return -uint64(n)
	}
	return uint64(n)
}

// Duration writes seconds with 0, 3, 6 or 9 decimals and an s: "0.250s".
func (w *Writer) Duration(d time.Duration) {
	w.Seconds(int64(d/time.Second), int32(d%time.Second))
}

// Time writes an RFC 3339 time in UTC with 0, 3, 6 or 9 decimals.
func (w *Writer) Time(t time.Time) {
	w.value()
	t = t.UTC()
	w.buf = append(w.buf, '"')
	w.buf = t.AppendFormat(w.buf, "2006-01-02T15:04:05")
	w.buf = appendDecimals(w.buf, t.Nanosecond())
	w.buf = append(w.buf, 'Z', '"')
}

// appendDecimals appends the fraction of a second in groups of three digits.
func appendDecimals(dst []byte, nanos int) []byte {
	if nanos == 0 {
		return dst
	}
	digits := 9
	for nanos%1000 == 0 {
		nanos /= 1000
		digits -= 3
	}
	at := len(dst) + digits
	dst = append(dst, ".000000000"[:digits+1]...)
	for ; nanos > 0; nanos /= 10 {
		dst[at] = byte('0' + nanos%10)
		at--
	}
	return dst
}

const hexDigits = "0123456789abcdef"

// AppendString appends s as a JSON string; see [AppendText].
func AppendString[T string | []byte](dst []byte, s T) []byte {
	return append(AppendText(append(dst, '"'), s), '"')
}

// AppendExact appends a whole number, as a string from 2^53 on, where JavaScript rounds.
func AppendExact(dst []byte, n uint64) []byte {
	if n >= 1<<53 {
		return append(strconv.AppendUint(append(dst, '"'), n, 10), '"')
	}
	return strconv.AppendUint(dst, n, 10)
}

// AppendText appends s as the contents of a JSON string. Angle brackets are escaped, so
// that the text is harmless when interpreted as HTML, and the line separators that
// JavaScript does not allow; invalid UTF-8 becomes U+FFFD.
func AppendText[T string | []byte](dst []byte, s T) []byte {
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if c >= ' ' && c != '"' && c != '\\' && c != '<' && c != '>' && c != 0x7f {
				i++
				continue
			}
			dst = append(dst, s[start:i]...)
			dst = appendEscape(dst, c)
			i++
			start = i
			continue
		}
		r, size := utf8.DecodeRuneInString(string(s[i:min(len(s), i+utf8.UTFMax)]))
		switch {
		case r == utf8.RuneError:
			dst = append(append(dst, s[start:i]...), "\ufffd"...)
			start = i + size
		case r == '\u2028' || r == '\u2029':
			dst = append(append(dst, s[start:i]...), `\u202`...)
			dst = append(dst, hexDigits[r&0xf])
			start = i + size
		}
		i += size
	}
	return append(dst, s[start:]...)
}

func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\b':
		return append(dst, `\b`...)
	case '\f':
		return append(dst, `\f`...)
	case '\n':
		return append(dst, `\n`...)
	case '\r':
		return append(dst, `\r`...)
	case '\t':
		return append(dst, `\t`...)
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xf])
}

// Value writes a value of the types that encoding/json decodes into: nil, bool,
// float64, string, []any and map[string]any, whose members are sorted by name. Values
// of other types are written as null.
func (w *Writer) Value(v any) {
	switch v := v.(type) {
	case bool:
		w.Bool(v)
	case string:
		w.String(v)
	case float64:
		w.Float(v, 64)
	case []any:
		w.BeginList()
		for _, e := range v {
			w.Value(e)
		}
		w.EndList()
	case map[string]any:
		w.BeginObject()
		for _, name := range slices.Sorted(maps.Keys(v)) {
			w.Key(name).Value(v[name])
		}
		w.EndObject()
	default:
		w.value()
		w.buf = append(w.buf, "null"...)
	}
}

// Struct writes an object with the fields of a struct, in their order and named by
// their json tags.
func (w *Writer) Struct(s any) {
	w.BeginObject()
	v := reflect.ValueOf(s)
	for i := range v.NumField() {
		w.Key(v.Type().Field(i).Tag.Get("json"))
		switch f := v.Field(i).Interface().(type) {
		case []string:
			w.Strings(f)
		case uint32:
			w.Uint32(f)
		case uint64:
			w.Uint64(f)
		case time.Duration:
			w.Duration(f)
		default:
			w.Value(f)
		}
	}
	w.EndObject()
}

// appendNumber appends f in the shortest form that parses as the same number with
// that many bits, without an exponent where that is usual. Values without a JSON
// number become strings.
func appendNumber(dst []byte, f float64, bits int) []byte {
	switch {
	case math.IsNaN(f):
		return append(dst, `"NaN"`...)
	case math.IsInf(f, 1):
		return append(dst, `"Infinity"`...)
	case math.IsInf(f, -1):
		return append(dst, `"-Infinity"`...)
	case f != 0 && (math.Abs(f) < 1e-6 || math.Abs(f) >= 1e21):
		return strconv.AppendFloat(dst, f, 'e', -1, bits)
	}
	return strconv.AppendFloat(dst, f, 'f', -1, bits)
}

// Number writes a whole number as a number up to 2^53, which every reader handles,
// and as a string beyond.
func (w *Writer) Number(n uint64) {
	if n > 1<<53 {
		w.Uint64(n)
		return
	}
	w.value()
	w.buf = strconv.AppendUint(w.buf, n, 10)
}
