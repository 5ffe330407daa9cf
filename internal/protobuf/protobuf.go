// Package protobuf appends fields of protobuf messages to a buffer, for encoders that
// have no message in memory, and reads them.
package protobuf

import (
	"encoding/binary"
	"errors"
	"math"
	"unicode/utf8"
)

// The wire types of fields.
const (
	Varint  = 0
	Fixed64 = 1
	Bytes   = 2
	Fixed32 = 5
)

// AppendTag appends the number and the wire type of a field.
func AppendTag(dst []byte, field, wireType int) []byte {
	return binary.AppendUvarint(dst, uint64(field<<3|wireType))
}

// AppendUint appends a field of an unsigned or enumeration type.
func AppendUint(dst []byte, field int, v uint64) []byte {
	return binary.AppendUvarint(AppendTag(dst, field, Varint), v)
}

// AppendInt appends a field of type int32 or int64.
func AppendInt(dst []byte, field int, v int64) []byte { return AppendUint(dst, field, uint64(v)) }

// AppendSint appends a field of type sint32 or sint64.
func AppendSint(dst []byte, field int, v int64) []byte {
	return binary.AppendVarint(AppendTag(dst, field, Varint), v)
}

// AppendDouble appends a field of type double.
func AppendDouble(dst []byte, field int, x float64) []byte {
	return AppendFixed64(dst, field, math.Float64bits(x))
}

// AppendFixed64 appends a field of type fixed64 or sfixed64.
func AppendFixed64(dst []byte, field int, v uint64) []byte {
	return binary.LittleEndian.AppendUint64(AppendTag(dst, field, Fixed64), v)
}

// AppendBytes appends a field of type string or bytes, or an encoded message.
func AppendBytes[T string | []byte](dst []byte, field int, b T) []byte {
	dst = binary.AppendUvarint(AppendTag(dst, field, Bytes), uint64(len(b)))
	return append(dst, b...)
}

// Open appends the start of a field that holds a message, and returns where the message
// starts. [Close] completes the field once the message follows.
func Open(dst []byte, field int) (b []byte, start int) {
	dst = append(AppendTag(dst, field, Bytes), 0)
	return dst, len(dst)
}

// Close completes a field of [Open]: the message is dst from start on. The message
// moves if it is longer than 127 bytes.
func Close(dst []byte, start int) []byte {
	n := len(dst) - start
	if n < 0x80 {
		dst[start-1] = byte(n)
		return dst
	}
	w := UvarintLen(n)
	for range w - 1 {
		dst = append(dst, 0)
	}
	copy(dst[start+w-1:], dst[start:start+n])
	binary.PutUvarint(dst[start-1:], uint64(n))
	return dst
}

// UvarintLen returns how many bytes n takes as a varint.
func UvarintLen(n int) int {
	w := 1
	for ; n >= 0x80; n >>= 7 {
		w++
	}
	return w
}

// BytesLen returns how many bytes a string, bytes or message of n bytes takes in a field
// with a number below 16.
func BytesLen(n int) int { return 1 + UvarintLen(n) + n }

// Field is a field of an encoded message.
type Field struct {
	Number int
	Type   int    // wire type
	Value  uint64 // of numbers
	Bytes  []byte // of strings, bytes and messages; shares memory with the message
}

var errMalformed = errors.New("protobuf: malformed message")

// Next returns the first field of msg and the rest of msg.
func Next(msg []byte) (f Field, rest []byte, err error) {
	tag, n := binary.Uvarint(msg)
	if n <= 0 || tag>>3 == 0 || tag>>3 > 1<<29-1 {
		return f, nil, errMalformed
	}
	f.Number, f.Type = int(tag>>3), int(tag&7)
	rest = msg[n:]
	switch f.Type {
	case Varint:
		if f.Value, n = binary.Uvarint(rest); n <= 0 {
			return f, nil, errMalformed
		}
	case Fixed64:
		if n = 8; len(rest) < n {
			return f, nil, errMalformed
		}
		f.Value = binary.LittleEndian.Uint64(rest)
	case Fixed32:
		if n = 4; len(rest) < n {
			return f, nil, errMalformed
		}
		f.Value = uint64(binary.LittleEndian.Uint32(rest))
	case Bytes:
		size, w := binary.Uvarint(rest)
		if w <= 0 || size > uint64(len(rest)-w) {
			return f, nil, errMalformed
		}
		n = w + int(size)
		f.Bytes = rest[w:n]
	default:
		return f, nil, errMalformed
	}
	return f, rest[n:], nil
}

// Fields calls f for each field of a message that this module has encoded. It ends at
// a malformed one.
func Fields(msg []byte, f func(Field)) {
	for len(msg) > 0 {
		field, rest, err := Next(msg)
		if err != nil {
			return
		}
		f(field)
		msg = rest
	}
}

// AppendPair appends a message with a name as field 1 and a value as field 2.
func AppendPair[T string | []byte](dst []byte, field int, name T, value []byte) []byte {
	n := 2 + UvarintLen(len(name)) + len(name) + UvarintLen(len(value)) + len(value)
	dst = binary.AppendUvarint(AppendTag(dst, field, Bytes), uint64(n))
	return AppendBytes(AppendBytes(dst, 1, name), 2, value)
}

// Text returns b with each byte that is not UTF-8 replaced, which fields of type string
// do not allow. It returns b itself if it is valid.
func Text(b []byte) []byte {
	if utf8.Valid(b) {
		return b
	}
	out := make([]byte, 0, len(b)+8)
	for _, r := range string(b) {
		out = utf8.AppendRune(out, r)
	}
	return out
}
