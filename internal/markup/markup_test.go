package markup

import "testing"

func TestPut(t *testing.T) {
	var p Page
	p.Put(HTML("<b title='"), `<"'&`, HTML("'>"), "a\x00b", 7, uint64(8), 1.25, -0.04, 3.0, true, []string{"<"}, HTML("</b>"))
	const want = "<b title='&lt;&#34;&#39;&amp;'>a\uFFFDb781.303true[&lt;]</b>"
	if got := string(p.Bytes()); got != want || p.Len() != len(want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if p.Reset(); p.Len() != 0 {
		t.Error("Reset leaves something")
	}
}
