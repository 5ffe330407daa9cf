package protobuf

import (
	"bytes"
	"encoding/binary"
	"math"
	"strings"
	"testing"
)

// TestNext has fields of each wire type at their limits, and fields that are cut off.
func TestNext(t *testing.T) {
	tag := func(number, kind uint64) []byte { return binary.AppendUvarint(nil, number<<3|kind) }
	with := func(tag []byte, b ...byte) []byte { return append(tag, b...) }
	largest := binary.AppendUvarint(nil, math.MaxUint64)
	for _, tt := range []struct {
		name string
		msg  []byte
		want Field // its number is 0 for a malformed message
	}{
		{"varint", with(tag(1, Varint), largest...), Field{Number: 1, Type: Varint, Value: math.MaxUint64}},
		{"varint cut off", with(tag(1, Varint), 0x80), Field{}},
		{"varint missing", tag(1, Varint), Field{}},
		{"varint too long", with(tag(1, Varint), bytes.Repeat([]byte{0xff}, 11)...), Field{}},
		{"fixed64", with(tag(2, Fixed64), 1, 2, 3, 4, 5, 6, 7, 8), Field{Number: 2, Type: Fixed64, Value: 0x0807060504030201}},
		{"fixed64 cut off", with(tag(2, Fixed64), 1, 2, 3, 4, 5, 6, 7), Field{}},
		{"fixed32", with(tag(2, Fixed32), 1, 2, 3, 0xff), Field{Number: 2, Type: Fixed32, Value: 0xff030201}},
		{"fixed32 cut off", with(tag(2, Fixed32), 1, 2, 3), Field{}},
		{"bytes", with(tag(3, Bytes), 2, 'a', 'b'), Field{Number: 3, Type: Bytes, Bytes: []byte("ab")}},
		{"no bytes", with(tag(3, Bytes), 0), Field{Number: 3, Type: Bytes, Bytes: []byte{}}},
		{"bytes cut off", with(tag(3, Bytes), 3, 'a', 'b'), Field{}},
		{"bytes without a length", tag(3, Bytes), Field{}},
		{"bytes of a length that overflows", with(tag(3, Bytes), largest...), Field{}},
		{"largest number", with(tag(1<<29-1, Varint), 1), Field{Number: 1<<29 - 1, Type: Varint, Value: 1}},
		{"number too large", with(tag(1<<29, Varint), 1), Field{}},
		{"number 0", with(tag(0, Varint), 1), Field{}},
		{"group", tag(1, 3), Field{}},
		{"tag cut off", []byte{0x80}, Field{}},
		{"nothing", nil, Field{}},
	} {
		f, rest, err := Next(tt.msg)
		if bad := tt.want.Number == 0; bad {
			if err == nil || rest != nil {
				t.Errorf("%s: %+v, %v, %v", tt.name, f, rest, err)
			}
			continue
		}
		if err != nil || f.Number != tt.want.Number || f.Type != tt.want.Type || f.Value != tt.want.Value || !bytes.Equal(f.Bytes, tt.want.Bytes) || len(rest) != 0 {
			t.Errorf("%s: %+v, %v, %v; want %+v", tt.name, f, rest, err, tt.want)
		}
		more := append(bytes.Clone(tt.msg), 8, 9)
		if _, rest, err := Next(more); err != nil || !bytes.Equal(rest, []byte{8, 9}) {
			t.Errorf("%s, more behind it: %v, %v", tt.name, rest, err)
		}
	}
}

// TestFieldsEndAtAMalformedOne visits what stands before it, once each.
func TestFieldsEndAtAMalformedOne(t *testing.T) {
	msg := AppendPair(nil, 1, "name", []byte("value"))
	msg = AppendPair(msg, 2, "", nil)
	var got []int
	Fields(append(msg, 0), func(f Field) {
		got = append(got, f.Number)
		var parts []string
		Fields(f.Bytes, func(f Field) { parts = append(parts, string(f.Bytes)) })
		if want := map[int]string{1: "name value", 2: " "}[f.Number]; strings.Join(parts, " ") != want {
			t.Errorf("field %d has %q, want %q", f.Number, parts, want)
		}
	})
	if len(got) != 2 || got[0] != 1 || got[1] != 2 {
		t.Errorf("fields %v", got)
	}
}

// TestText replaces each bad byte, and returns valid text itself.
func TestText(t *testing.T) {
	for text, want := range map[string]string{"": "", "aé": "aé", "a\xff\xfeb": "a\uFFFD\uFFFDb", "\xed\xa0\x80": "\uFFFD\uFFFD\uFFFD"} {
		b := []byte(text)
		got := Text(b)
		if string(got) != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
		if text == want && len(b) > 0 && &got[0] != &b[0] {
			t.Errorf("%q is copied", text)
		}
	}
}

// TestLengthOfAMessage: the length moves the message only from 128 bytes on.
func TestLengthOfAMessage(t *testing.T) {
	for _, n := range []int{0, 1, 127, 128, 129, 1<<14 - 1, 1 << 14} {
		content := bytes.Repeat([]byte("x"), n)
		b, start := Open([]byte("before"), 5)
		b = Close(append(b, content...), start)
		f, rest, err := Next(b[len("before"):])
		if err != nil || f.Number != 5 || !bytes.Equal(f.Bytes, content) || len(rest) != 0 || len(b) != len("before")+BytesLen(n) {
			t.Errorf("%d bytes: field %d with %d bytes, %d behind it, %v", n, f.Number, len(f.Bytes), len(rest), err)
		}
	}
}
