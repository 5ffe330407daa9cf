package convert

import "testing"

// TestHeaders has the ends of the ranges of characters, and their neighbors.
func TestHeaders(t *testing.T) {
	for name, ok := range map[string]bool{"a": true, "z": true, "A": true, "Z": true, "0": true, "9": true, "-": true, "_": true, "": false, "`": false, "{": false, "@": false, "[": false, "/": false, ":": false, " ": false, "é": false, "a b": false} {
		for _, form := range []string{name, "x" + name, name + "x"} {
			if want := ok || name == "" && form != ""; validHeader(form, "v") != want {
				t.Errorf("name %q: %t", form, !want)
			}
		}
	}
	for text, ok := range map[string]bool{"": true, "a b": true, "!": true, "~": true, " a": false, "a ": false, "\x7f": false, "a\x1fb": false, "é": false} {
		if validHeader("x", text) != ok {
			t.Errorf("text %q: %t", text, !ok)
		}
	}
}
