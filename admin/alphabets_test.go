package admin

import (
	"regexp"
	"strconv"
	"testing"
)

// TestAlphabets compares checks of single bytes with a regular expression.
func TestAlphabets(t *testing.T) {
	for name, x := range map[string]struct {
		valid string
		of    func(c string) bool
	}{
		"hex digits":        {`^[0-9A-Fa-f]$`, func(c string) bool { return unhex(c[0]) >= 0 }},
		"names of products": {`^[A-Za-z0-9._-]$`, validProduct},
		"names of hosts":    {`^[a-z0-9_-]$`, func(c string) bool { return validHostName(c + "a") }},
		"queries":           {`^[A-Za-z0-9%=_.~*-]$`, func(c string) bool { return !unsafeInQuery(rune(c[0])) }},
	} {
		valid := regexp.MustCompile(x.valid)
		for i := range 128 {
			c := string(rune(i))
			if want := valid.MatchString(c); x.of(c) != want {
				t.Errorf("%s: %q: %t", name, c, !want)
			}
		}
	}
	for i := range 256 {
		if got := unhex("0123456789ABCDEF"[i>>4])<<4 | unhex("0123456789abcdef"[i&15]); got != i {
			t.Errorf("unhex: %s is %d", strconv.FormatInt(int64(i), 16), got)
		}
	}
}
