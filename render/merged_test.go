package render

import (
	"bytes"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// TestOneSeriesOfSeveralStats has names, and tags, that the exposition cannot
// tell apart: counts are added up, and the gauge that was made first is shown,
// whichever name comes first in the order of names.
func TestOneSeriesOfSeveralStats(t *testing.T) {
	for _, names := range [][2]string{{"a-b", "a.b"}, {"a.b", "a-b"}} {
		st := store.New(store.Options{})
		net := st.Scope("", store.ScopeOptions{Network: true})
		for i, name := range names {
			n := 1 + float64(i)
			net.Counter("c" + name).Add(uint64(n))
			_ = net.FloatGauge("g" + name).Set(n)
			net.Histogram("h"+name, store.Unspecified).RecordFloat(n, 1)
			_ = net.FloatGauge("t", tags.Tag{Name: name, Value: "v"}).Set(n)
		}
		st.Flush(store.FlushOptions{}).Close()
		var b bytes.Buffer
		if err := Exposition(&b, st, Options{}); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"ca_b{} 3\n", "ga_b{} 1\n", "ha_b_sum{} 3\n", "ha_b_count{} 2\n", "t{a_b=\"v\"} 1\n"} {
			if !strings.Contains(b.String(), want) {
				t.Errorf("%q: no %q", names, want)
			}
		}
		if t.Failed() {
			t.Log(b.String())
		}
	}
}
