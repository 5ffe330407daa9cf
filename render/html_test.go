package render

import (
	"bytes"
	"html"
	"io"
	"strings"
	"testing"

	nethtml "golang.org/x/net/html"

	"github.com/statsd-admin/statsd-admin/internal/golden"
	"github.com/statsd-admin/statsd-admin/store"
)

func TestHTMLLines(t *testing.T) {
	st := workedExample(t)
	st.Root().Text("edge.<motto>").Set(`Tom & "Jerry's" <b>`)
	for _, tt := range []struct {
		name string
		st   *store.Store
		o    Options
	}{
		{"html", st, Options{}},
		{"html-usedonly-cumulative", st, Options{UsedOnly: true, Buckets: Cumulative}},
		{"html-hidden-only", st, Options{Hidden: HiddenOnly}},
		{"html-counters", st, Options{Type: Counters}},
		{"html-nothing", store.New(store.Options{}), Options{}},
		{"html-nothing-gauges", store.New(store.Options{}), Options{Type: Gauges}},
		{"html-nothing-histograms", store.New(store.Options{}), Options{Type: Histograms}},
		{"html-nothing-readouts", store.New(store.Options{}), Options{Type: TextReadouts}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var b bytes.Buffer
			if err := HTMLLines(&b, tt.st, tt.o); err != nil {
				t.Fatal(err)
			}
			golden.Check(t, tt.name, b.Bytes())
		})
	}
}

func TestHTMLUnescapedIsText(t *testing.T) {
	st := randomStore(t, 1)
	var text, lines bytes.Buffer
	if err := Text(&text, st, Options{}); err != nil {
		t.Fatal(err)
	}
	if err := HTMLLines(&lines, st, Options{}); err != nil {
		t.Fatal(err)
	}
	if got, want := html.UnescapeString(lines.String()), text.String(); got != want {
		t.Errorf("the unescaped HTML is not the text:\n%q\n%q", got, want)
	}
}

// FuzzHTMLEscape checks that an HTML parser finds the same elements and
// attributes whatever a name and a readout's value are.
func FuzzHTMLEscape(f *testing.F) {
	for _, s := range []string{"", "a", "<script>alert(1)</script>", `"onload='x'`, "</pre><i>", "&lt;&#60", "<!--", "<!\x00", "\xff<\xc0", "]]>"} {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, name, value string) {
		st := store.New(store.Options{})
		st.Root().Text("a." + name).Set(value)
		st.Root().Counter("b." + name).Inc()
		st.Root().Histogram("c."+name, store.Bytes)
		var b bytes.Buffer
		if err := HTMLLines(&b, st, Options{}); err != nil {
			t.Fatal(err)
		}
		page := "<!doctype html><title>t</title><pre>" + b.String() + "</pre><p title=\"" + string(escapeHTML([]byte(name), 0)) + "\">"
		z := nethtml.NewTokenizer(strings.NewReader(page))
		tags, attrs := 0, 0
		for {
			switch z.Next() {
			case nethtml.ErrorToken:
				if z.Err() != io.EOF {
					t.Fatal(z.Err())
				}
				if tags != 5 || attrs != 1 {
					t.Errorf("name %q, value %q: %d tags and %d attributes, want 5 and 1:\n%s", name, value, tags, attrs, page)
				}
				return
			case nethtml.StartTagToken, nethtml.EndTagToken, nethtml.SelfClosingTagToken:
				tags++
				attrs += len(z.Token().Attr)
			case nethtml.CommentToken:
				t.Fatalf("name %q, value %q make a comment:\n%s", name, value, page)
			}
		}
	})
}
