package render

import (
	"bytes"
	"io"
	"slices"
	"strings"

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

// htmlText escapes text for element content and for quoted attributes alike.
var htmlText = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&#39;")

// escapeHTML escapes b[from:].
func escapeHTML(b []byte, from int) []byte {
	if !bytes.ContainsAny(b[from:], `&<>"'`) {
		return b
	}
	return append(b[:from], htmlText.Replace(string(b[from:]))...)
}
