//go:build !race && !purego

package line

import "testing"

func TestParseDoesNotAllocate(t *testing.T) {
	p := New(Config{TagContainer: true})
	var l Line
	for _, s := range []string{
		"cart.items:1|c",
		"rt:12.5:13:900|ms|#route:/a,canary|@0.1",
		"a[k=v]b:1|c",
		"a\x01b:1|c|#k\x01:v|c:x",
		"a:1.00000000000000000000000000000000000000000000001e-5|h",
		"a:1|c:2|c:3|c:4|c",
		"a:1|zz",
	} {
		in := []byte(s)
		if n := testing.AllocsPerRun(100, func() { p.Parse(&l, in) }); n != 0 {
			t.Errorf("%q: %v allocations", s, n)
		}
	}
}
