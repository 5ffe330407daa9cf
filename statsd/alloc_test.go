//go:build !race && !purego

package statsd

import (
	"testing"

	"github.com/statsd-admin/statsd-admin/statsd/mapping"
)

func TestKnownLineDoesNotAllocate(t *testing.T) {
	for _, in := range []string{
		"a:1|c", "a:1|c|@0.3", "a:1|c|#x:1,y,z:3", "a,x=1,y=2:1|c", "a[x=1]b:1|c",
		"a:1.5|ms", "a:1:2:3|ms|@0.1|#x:1", "a:-1.5|h", "a:5|g", "a:+5|g", "a:member|s",
		"a:1|ms:2|ms:3|c:x|s", "a:1|c|c:ci-1|e:x|T17",
	} {
		for _, cfg := range []Config{{}, {Rules: rulesOf(t, mapping.Config{Rules: []mapping.Rule{
			{Match: "a", Name: "mapped", Labels: labels("l", "$0"), Scale: 2}, {Match: "ab", Name: "dropped", Drop: true},
		}})}} {
			checkKnownLine(t, cfg, in)
		}
	}
}

func checkKnownLine(t *testing.T, cfg Config, in string) {
	r := newRig(t, cfg)
	w := r.streamWorkers[0]
	p := []byte(in)
	send := func() {
		w.enter()
		defer w.leave(r.l)
		w.packet(r.l, p, false, source{})
	}
	for range 5000 {
		send() // also until the store's counters are hot
	}
	if n := testing.AllocsPerRun(200, send); n != 0 {
		t.Errorf("%q: %v allocations", in, n)
	}
	r.conserved()
}
