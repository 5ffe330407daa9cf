package httptransport

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
)

// TestBodiesAtTheLimitOfReplays reads bodies around the limit in pieces, twice where that is
// possible.
func TestBodiesAtTheLimitOfReplays(t *testing.T) {
	for _, tt := range []struct {
		size       int
		keep, want bool
	}{
		{0, true, true}, {1, true, true}, {maxReplay - 1, true, true}, {maxReplay, true, true}, {maxReplay + 1, true, false},
		{1, false, false}, {0, false, true},
	} {
		text := strings.Repeat("x", tt.size)
		b := newReplay(&http.Request{Body: io.NopCloser(strings.NewReader(text))}, tt.keep)
		for try := range 2 {
			got, err := io.ReadAll(io.LimitReader(b, int64(tt.size+10)))
			if err != nil || string(got) != text {
				t.Errorf("%d bytes, try %d: %d bytes, %v", tt.size, try, len(got), err)
			}
			if ok := b.rewind(); ok != tt.want {
				t.Errorf("%d bytes, kept %v: can be read again: %v", tt.size, tt.keep, ok)
			}
			if !tt.want {
				break
			}
		}
		if b.failed() || !b.ended.Load() {
			t.Errorf("%d bytes: failed %v, ended %v", tt.size, b.failed(), b.ended.Load())
		}
		b.Close()
		b.Close()
	}
}

// TestPartOfABodyIsReadAgain rewinds in the middle of a body, which continues behind that part.
func TestPartOfABodyIsReadAgain(t *testing.T) {
	b := newReplay(&http.Request{Body: io.NopCloser(strings.NewReader("abcdef"))}, true)
	part := make([]byte, 3)
	if _, err := io.ReadFull(b, part); err != nil || !b.rewind() {
		t.Fatal(err)
	}
	if all, err := io.ReadAll(b); err != nil || string(all) != "abcdef" {
		t.Errorf("%q, %v", all, err)
	}
}

func TestBrokenBodyIsNotReadAgain(t *testing.T) {
	broken := errors.New("reset")
	b := newReplay(&http.Request{Body: io.NopCloser(iotest.ErrReader(broken))}, true)
	if _, err := b.Read(make([]byte, 1)); err != broken || b.rewind() || !b.failed() {
		t.Errorf("%v, rewind %v, failed %v", err, b.rewind(), b.failed())
	}
	after := newReplay(&http.Request{Body: io.NopCloser(iotest.ErrReader(http.ErrBodyReadAfterClose))}, true)
	if _, err := after.Read(make([]byte, 1)); err == nil || after.failed() {
		t.Errorf("closed by the server: %v, failed %v", err, after.failed())
	}
	closed := newReplay(&http.Request{Body: io.NopCloser(strings.NewReader("abc"))}, true)
	closed.Close()
	if n, err := closed.Read(make([]byte, 1)); n != 0 || err != http.ErrBodyReadAfterClose || closed.failed() {
		t.Errorf("closed: %d, %v, failed %v", n, err, closed.failed())
	}
	none := newReplay(&http.Request{Body: http.NoBody}, true)
	if none.Close(); none != nil || !none.rewind() || none.failed() {
		t.Error("no body can be sent again")
	}
}
