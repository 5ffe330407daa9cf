package store

import (
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/store/tags"
	"github.com/statsd-admin/statsd-admin/symtab"
)

// TestPlainName checks each byte at each place of a word, and behind the words.
func TestPlainName(t *testing.T) {
	for c := range 256 {
		want := c >= 0x20 && c < 0x7f && !strings.ContainsRune(`"\<>`, rune(c))
		for at := range 11 {
			b := []byte("~ az09!#=?;")
			b[at] = byte(c)
			if got := plainName(string(b)); got != want {
				t.Fatalf("plainName(%q) is %t, want %t", b, got, want)
			}
		}
	}
}

// TestSegmentsBehindLiterals asks for each segment of a name, from its start and one
// after the other, with literal segments in all places.
func TestSegmentsBehindLiterals(t *testing.T) {
	table := symtab.New(symtab.Options{})
	long := strings.Repeat("l.", 100) // its length takes two bytes
	for _, want := range [][]string{
		{"a", "b", "c"}, {"x.y", "a"}, {long, "a", "x.y", "b"}, {"a", long, long, "b", "x"},
	} {
		var parts [][]byte
		for _, s := range want {
			if strings.Contains(s, ".") {
				parts = append(parts, table.AppendLiteral(nil, s))
			} else {
				parts = append(parts, table.AppendEncode(nil, s))
			}
		}
		enc := table.AppendJoin(nil, parts...)
		all := segmentsOf(enc)
		for i, s := range want {
			alone := segmentsOf(enc)
			if got := string(alone.text(table, i)); got != s {
				t.Errorf("segment %d of %q: %q", i, want, got)
			}
			if got := string(all.text(table, i)); got != s {
				t.Errorf("segment %d of %q after those before it: %q", i, want, got)
			}
		}
		if got := all.text(table, len(want)); got != nil {
			t.Errorf("%q has a segment more: %q", want, got)
		}
	}
}

// TestSplitRecordThatIsNone has bytes that readers see when a stat ends meanwhile.
func TestSplitRecordThatIsNone(t *testing.T) {
	for _, rec := range []string{"", "\x05abc", "\x80", "\x80\x80", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"} {
		if name, rest := splitRecord([]byte(rec)); name != nil || rest != nil {
			t.Errorf("%q: name %q, rest %q", rec, name, rest)
		}
	}
	if name, rest := splitRecord([]byte("\x02abc")); string(name) != "\x02ab" || string(rest) != "c" {
		t.Errorf("name %q, rest %q", name, rest)
	}
}

// TestValuesThatAreSegments take no bytes of their own in a record.
func TestValuesThatAreSegments(t *testing.T) {
	st := New(Options{})
	for _, tt := range []struct {
		full, value string
		want        int // length behind the name
	}{
		{"val.b.c", "val", 5}, {"a.val.c", "val", 5}, {"a.b.val", "val", 5},
		{"a.b.vals", "val", 9}, {"a.b", "b.val", 11}, {"a.b", "", 6},
	} {
		rec := st.appendRecord(nil, false, tt.full, "family", []tags.Tag{{Name: "t", Value: tt.value}}, false)
		_, rest := splitRecord(rec)
		if len(rest) != tt.want {
			t.Errorf("value %q of %q: %d bytes %x, want %d", tt.value, tt.full, len(rest), rest, tt.want)
		}
	}
}

func TestSegmentIndex(t *testing.T) {
	for _, tt := range []struct {
		name, value string
		want        int
	}{
		{"a.b.c", "a", 0}, {"a.b.c", "b", 1}, {"a.b.c", "c", 2}, {"a.b.b", "b", 1}, {"a", "a", 0},
		{"a.b.c", "d", -1}, {"a.b.c", "a.b", -1}, {"a..c", "", -1}, {"", "a", -1}, {"ab.c", "a", -1},
	} {
		if got := segmentIndex(tt.name, tt.value); got != tt.want {
			t.Errorf("segment %q of %q: %d, want %d", tt.value, tt.name, got, tt.want)
		}
	}
}
