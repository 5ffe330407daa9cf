package symtab

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func text(t *Table, enc []byte) string { return string(t.AppendText(nil, enc)) }

// TestRoundTrip holds the text rules: only trailing dots are lost.
func TestRoundTrip(t *testing.T) {
	tests := []struct{ in, want string }{
		{"", ""},
		{".", ""},
		{"...", ""},
		{"cart", "cart"},
		{"cart.items", "cart.items"},
		{"cart.items.", "cart.items"},
		{"cart.items...", "cart.items"},
		{".cart", ".cart"},
		{"..cart", "..cart"},
		{"cart..items", "cart..items"},
		{"..a...b..", "..a...b"},
		{"a b", "a b"},
		{"a,b.c$d.%e\tf", "a,b.c$d.%e\tf"},
		{"\x00\xff\x80.\n\r.é.\xc3", "\x00\xff\x80.\n\r.é.\xc3"},
		{"same.same.same", "same.same.same"},
		{strings.Repeat("x", 100_000), strings.Repeat("x", 100_000)},
		{strings.Repeat("y", bigToken-1), strings.Repeat("y", bigToken-1)},
		{strings.Repeat("z", bigToken), strings.Repeat("z", bigToken)},
		{strings.Repeat("a.", 99_999) + "a", strings.Repeat("a.", 99_999) + "a"},
		{strings.Repeat(".", 100_000) + "a", strings.Repeat(".", 100_000) + "a"},
	}
	for _, tt := range tests {
		tab := New(Options{})
		enc := tab.AppendEncode([]byte("before"), tt.in)
		if !bytes.HasPrefix(enc, []byte("before")) {
			t.Fatalf("AppendEncode(%.40q) lost what was in the buffer", tt.in)
		}
		enc = enc[len("before"):]
		if got := text(tab, enc); got != tt.want {
			t.Errorf("%.40q reads back as %.40q, want %.40q", tt.in, got, tt.want)
		}
		if !tab.EqualText(enc, tt.want) {
			t.Errorf("EqualText(encoding of %.40q, %.40q) = false", tt.in, tt.want)
		}
		for _, other := range []string{tt.want + "x", tt.want + ".x", "x" + tt.want, tt.want + "."} {
			if tab.EqualText(enc, other) {
				t.Errorf("EqualText(encoding of %.40q, %.40q) = true", tt.in, other)
			}
		}
		if got := TrimName(tt.in); got != tt.want {
			t.Errorf("TrimName(%.40q) = %.40q, want %.40q", tt.in, got, tt.want)
		}
		if got, want := IsEmpty(enc), tt.want == ""; got != want {
			t.Errorf("IsEmpty(encoding of %.40q) = %t, want %t", tt.in, got, want)
		}
		tail := append(slices.Clone(enc), "behind"...)
		if got := Size(tail); got != len(enc) {
			t.Errorf("Size(encoding of %.40q and more) = %d, want %d", tt.in, got, len(enc))
		}
		if got := text(tab, tail); got != tt.want {
			t.Errorf("%.40q in a larger buffer reads back as %.40q", tt.in, got)
		}
		tab.Release(enc)
		if n := tab.NumSymbols(); n != 0 {
			t.Errorf("%d symbols left after releasing %.40q", n, tt.in)
		}
	}
}

// TestEncodedNumbers issues symbols 1 to 16384 and looks at their varints.
func TestEncodedNumbers(t *testing.T) {
	tab := New(Options{})
	want := map[int]string{
		1: "\x01", 127: "\x7f", 128: "\x80\x01", 300: "\xac\x02", 16383: "\xff\x7f", 16384: "\x80\x80\x01",
	}
	for i := 1; i <= 16384; i++ {
		enc := tab.AppendEncode(nil, fmt.Sprintf("t%d", i))
		if w, ok := want[i]; ok && string(enc) != string(rune(len(w)))+w {
			t.Errorf("encoding of token number %d = % x, want the length and % x", i, enc, w)
		}
	}
	if n := tab.NumSymbols(); n != 16384 {
		t.Errorf("NumSymbols() = %d, want 16384", n)
	}
}

func TestEncodingLayout(t *testing.T) {
	tab := New(Options{})
	abc := tab.AppendEncode(nil, "a.b.a")
	if want := "\x03\x01\x02\x01"; string(abc) != want {
		t.Errorf("a.b.a encodes as % x, want % x", abc, want)
	}
	lit := tab.AppendLiteral(nil, "x.y")
	if want := "\x05\x00\x03x.y"; string(lit) != want {
		t.Errorf("literal x.y encodes as % x, want % x", lit, want)
	}
	if got, want := tab.AppendJoin(nil, abc, lit), "\x08\x01\x02\x01\x00\x03x.y"; string(got) != want {
		t.Errorf("joined: % x, want % x", got, want)
	}
	if got := tab.AppendLiteral(nil, ""); string(got) != "\x00" {
		t.Errorf("empty literal encodes as % x, want 00", got)
	}
	long := tab.AppendEncode([]byte("k"), strings.Repeat("a.", 200)+"a")
	if want := "k\xc9\x01" + strings.Repeat("\x01", 201); string(long) != want {
		t.Errorf("201 tokens encode as % x", long)
	}
}
