package redact

import (
	"errors"
	"strings"
	"testing"
)

func TestPathOfASecretAtEachPosition(t *testing.T) {
	for _, name := range fields {
		for _, path := range []string{name, "db_" + name, strings.ToUpper(name), name + ".a.b", "a." + name + ".b", "a.b." + name, "a." + name + "[3].b", "a[0]." + name + "[1]"} {
			if !Path(path) {
				t.Errorf("%q is no secret", path)
			}
		}
		for _, path := range []string{"x" + name, name + "_path", "a." + name + "x[0]", "a[" + name + "]"} {
			if Path(path) {
				t.Errorf("%q is a secret", path)
			}
		}
	}
	for _, path := range []string{"", ".", "admin.address", "node.id[0]"} {
		if Path(path) {
			t.Errorf("%q is a secret", path)
		}
	}
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

func TestScrubberReportsAFailedWrite(t *testing.T) {
	want := errors.New("disk full")
	s := NewScrubber(failingWriter{want})
	if n, err := s.Write([]byte("part of a line")); n != 14 || err != nil {
		t.Errorf("before the line ends: %d, %v", n, err)
	}
	if n, err := s.Write([]byte("\nnext")); n != 0 || err != want {
		t.Errorf("at the end of the line: %d, %v", n, err)
	}
	s = NewScrubber(failingWriter{want})
	_, _ = s.Write([]byte("a"))
	if err := s.Close(); err != want {
		t.Errorf("Close: %v", err)
	}
}

// TestScrubberSplitsLinesAtItsLimit checks that a line of the limit is written at once,
// and that one byte less is kept until it ends.
func TestScrubberSplitsLinesAtItsLimit(t *testing.T) {
	for size, want := range map[int]int{maxScrubbed - 1: 0, maxScrubbed: maxScrubbed, maxScrubbed + 1: maxScrubbed + 1} {
		var out strings.Builder
		s := NewScrubber(&out)
		_, _ = s.Write([]byte(strings.Repeat("x", size)))
		if out.Len() != want {
			t.Errorf("%d of %d bytes are written before the line ends, want %d", out.Len(), size, want)
		}
		if err := s.Close(); err != nil || out.Len() != size {
			t.Errorf("%d of %d bytes in the end, %v", out.Len(), size, err)
		}
	}
}
