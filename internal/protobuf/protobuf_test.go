package protobuf

import (
	"bytes"
	"math"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// TestFields compares with the reference implementation and reads its own output.
func TestFields(t *testing.T) {
	got := AppendUint(nil, 1, 300)
	got = AppendInt(got, 2, -7)
	got = AppendSint(got, 16, -7)
	got = AppendDouble(got, 3, 1.5)
	got = AppendFixed64(got, 4, 1<<63)
	got = AppendBytes(got, 2047, "text")
	got = append(AppendTag(got, 9, Fixed32), 1, 0, 0, 0)

	want := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 300)
	want = protowire.AppendVarint(protowire.AppendTag(want, 2, protowire.VarintType), math.MaxUint64-6)
	want = protowire.AppendVarint(protowire.AppendTag(want, 16, protowire.VarintType), protowire.EncodeZigZag(-7))
	want = protowire.AppendFixed64(protowire.AppendTag(want, 3, protowire.Fixed64Type), math.Float64bits(1.5))
	want = protowire.AppendFixed64(protowire.AppendTag(want, 4, protowire.Fixed64Type), 1<<63)
	want = protowire.AppendString(protowire.AppendTag(want, 2047, protowire.BytesType), "text")
	want = protowire.AppendFixed32(protowire.AppendTag(want, 9, protowire.Fixed32Type), 1)
	if !bytes.Equal(got, want) {
		t.Fatalf("% x, want % x", got, want)
	}
	var numbers []int
	for len(got) > 0 {
		f, rest, err := Next(got)
		if err != nil {
			t.Fatal(err)
		}
		numbers = append(numbers, f.Number)
		if f.Number == 2047 && string(f.Bytes) != "text" {
			t.Errorf("%q", f.Bytes)
		}
		got = rest
	}
	if len(numbers) != 7 || numbers[6] != 9 {
		t.Errorf("fields %v", numbers)
	}
}

func FuzzNext(f *testing.F) {
	f.Add(AppendBytes(AppendUint(nil, 1, 300), 2, "text"))
	f.Add([]byte{0})
	f.Add([]byte{10, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1})
	f.Add([]byte{0x0b, 0x0c})
	f.Fuzz(func(t *testing.T, msg []byte) {
		for len(msg) > 0 {
			number, kind, n := protowire.ConsumeField(msg)
			field, rest, err := Next(msg)
			if err != nil {
				return
			}
			if kind == protowire.StartGroupType || n < 0 || field.Number != int(number) || len(rest) != len(msg)-n {
				t.Fatalf("% x: field %d and %d bytes left, want %d and %d", msg, field.Number, len(rest), number, len(msg)-n)
			}
			msg = rest
		}
	})
}

// TestOpenClose nests messages whose lengths take one to three bytes.
func TestOpenClose(t *testing.T) {
	for _, n := range []int{0, 1, 100, 127, 128, 129, 16383, 16384, 1 << 20} {
		text := bytes.Repeat([]byte{'x'}, n)
		got, outer := Open([]byte("before"), 1)
		got = AppendUint(got, 3, 7)
		got, inner := Open(got, 300)
		got = Close(AppendBytes(got, 2, text), inner)
		got = Close(AppendUint(got, 4, 8), outer)

		msg := AppendBytes(AppendUint(nil, 3, 7), 300, AppendBytes(nil, 2, text))
		want := AppendBytes([]byte("before"), 1, AppendUint(msg, 4, 8))
		if !bytes.Equal(got, want) {
			t.Errorf("%d bytes: a message of %d bytes, want %d, or other ones", n, len(got), len(want))
		}
		if field := AppendBytes(nil, 15, text); len(field) != BytesLen(n) {
			t.Errorf("BytesLen(%d) = %d, want %d", n, BytesLen(n), len(field))
		}
	}
}
