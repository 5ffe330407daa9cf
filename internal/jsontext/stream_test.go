package jsontext

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

// pieces keeps its input, and fails once it has more than limit pieces.
type pieces struct {
	sent  [][]byte
	limit int
	err   error
}

func (p *pieces) Write(b []byte) (int, error) {
	if len(p.sent) == p.limit {
		return 0, p.err
	}
	p.sent = append(p.sent, bytes.Clone(b))
	return len(b), nil
}

// TestStreamEqualsTheDocument sends a document in pieces, none of which is larger than
// the limit and one string.
func TestStreamEqualsTheDocument(t *testing.T) {
	write := func(w *Writer) {
		w.BeginList()
		for range 1000 {
			w.String(strings.Repeat("x", 100))
		}
		w.EndList()
	}
	var whole Writer
	write(&whole)
	p := &pieces{limit: 1000}
	w := To(p)
	write(w)
	if w.Err() != nil || w.Finish() != nil {
		t.Errorf("%v", w.Err())
	}
	if got := bytes.Join(p.sent, nil); !bytes.Equal(got, whole.Bytes()) {
		t.Errorf("%d bytes, want %d", len(got), len(whole.Bytes()))
	}
	if len(p.sent) != 4 {
		t.Errorf("%d pieces, want 4", len(p.sent))
	}
	for _, piece := range p.sent[:len(p.sent)-1] {
		if len(piece) < pieceBytes || len(piece) >= pieceBytes+106 {
			t.Errorf("a piece of %d bytes", len(piece))
		}
	}
}

// TestPieceAtTheLimit has an element that ends just before, at and behind the limit.
func TestPieceAtTheLimit(t *testing.T) {
	for end, want := range map[int]int{pieceBytes - 1: 0, pieceBytes: 1, pieceBytes + 1: 1} {
		p := &pieces{limit: 9}
		w := To(p)
		w.BeginList()
		w.String(strings.Repeat("x", end-len("[\n \"\"")))
		w.Bool(true)
		if len(p.sent) != want {
			t.Errorf("%d bytes: %d pieces, want %d", end, len(p.sent), want)
		}
	}
}

func TestFirstErrorOfTheDestinationStays(t *testing.T) {
	first := errors.New("first")
	p := &pieces{limit: 1, err: first}
	w := To(p)
	w.BeginList()
	for range 3 {
		w.String(strings.Repeat("x", pieceBytes))
	}
	if w.Err() != first {
		t.Errorf("%v", w.Err())
	}
	p.err, p.limit = errors.New("second"), 9
	w.EndList()
	if err := w.Finish(); err != first || len(p.sent) != 1 {
		t.Errorf("%v, %d pieces", err, len(p.sent))
	}
}
