package render

import (
	"bytes"
	"testing"

	"github.com/statsd-admin/statsd-admin/internal/golden"
	"github.com/statsd-admin/statsd-admin/store"
)

// TestTimersInSeconds shows timers of network input in seconds, and nothing
// else.
func TestTimersInSeconds(t *testing.T) {
	st := store.New(store.Options{
		Naming: store.Naming{NetworkSeconds: true, NetworkRunes: true},
		Histograms: []store.HistogramSetting{{
			Match: func(string) bool { return true }, Buckets: []float64{5, 500, 2500},
		}},
	})
	net := st.Scope("", store.ScopeOptions{Network: true})
	net.Histogram("tüner--a", store.Milliseconds).RecordFloat(12.5, 1)
	net.Histogram("sizes", store.Unspecified).RecordFloat(700, 1)
	st.Root().Histogram("own", store.Milliseconds).Record(700)
	st.Flush(store.FlushOptions{}).Close()
	var b bytes.Buffer
	for _, form := range []Buckets{Default, Summary} {
		if err := Exposition(&b, st, Options{Buckets: form}); err != nil {
			t.Fatal(err)
		}
	}
	golden.Check(t, "timers-in-seconds", b.Bytes())
}
