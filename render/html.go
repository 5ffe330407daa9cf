package render

import (
	"io"
	"slices"

	"github.com/statsd-admin/statsd-admin/store"
)

// HTMLLines writes the contents of a <pre> element: the lines of [Text] with
// names and values of text readouts escaped. An empty group of selected stats
// is noted in italics. The caller writes the page around the lines.
func HTMLLines(w io.Writer, st *store.Store, o Options) error {
	v := st.View()
	defer v.Close()
	t := textLines{out: newOutput(w), html: true}
	for _, g := range []struct {
		name  string
		types []Type
		write func(*store.View, *Options) (bool, error)
	}{
		{"TextReadouts", []Type{TextReadouts}, t.texts},
		{"Counters and Gauges", []Type{Counters, Gauges}, t.scalars},
		{"Histograms", []Type{Histograms}, t.histograms},
	} {
		if o.Type != All && !slices.Contains(g.types, o.Type) {
			continue
		}
		some, err := g.write(v, &o)
		if err != nil {
			return err
		}
		if !some {
			t.out.buf = append(t.out.buf, "<i>No "...)
			t.out.buf = append(t.out.buf, g.name...)
			t.out.buf = append(t.out.buf, " found</i>\n"...)
		}
	}
	return t.out.flush()
}

// escapeHTML escapes b[from:], so that it is text in HTML, in element content
// and in quoted attributes alike.
func escapeHTML(b []byte, from int) []byte {
	more := 0
	for _, c := range b[from:] {
		if ref := htmlReference(c); ref != "" {
			more += len(ref) - 1
		}
	}
	if more == 0 {
		return b
	}
	read := len(b)
	b = slices.Grow(b, more)[:read+more]
	for write := len(b); write > read; {
		read--
		ref := htmlReference(b[read])
		if ref == "" {
			write--
			b[write] = b[read]
			continue
		}
		write -= len(ref)
		copy(b[write:], ref)
	}
	return b
}

// htmlReference returns what stands for c in HTML, "" for c itself.
func htmlReference(c byte) string {
	switch c {
	case '&':
		return "&amp;"
	case '<':
		return "&lt;"
	case '>':
		return "&gt;"
	case '"':
		return "&quot;"
	case '\'':
		return "&#39;"
	}
	return ""
}
