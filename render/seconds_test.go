package render

import (
	"bytes"
	"errors"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/internal/golden"
	"github.com/statsd-admin/statsd-admin/internal/protobuf"
	"github.com/statsd-admin/statsd-admin/render/naming"
	"github.com/statsd-admin/statsd-admin/store"
)

// TestTimersInSeconds shows timers of network input in seconds, and nothing
// else.
func TestTimersInSeconds(t *testing.T) {
	st := newStore(store.Options{
		Naming: naming.Rules{NetworkSeconds: true, NetworkRunes: true},
		Histograms: []store.HistogramSetting{{
			Match: func(string) bool { return true }, Buckets: []float64{5, 500, 2500},
		}},
	})
	net := st.ScopeWith("", store.ScopeOptions{Network: true})
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
	b.Reset()
	for _, form := range []Buckets{Default, Summary} {
		if err := Protobuf(&b, st, Options{Buckets: form}); err != nil {
			t.Fatal(err)
		}
	}
	golden.Check(t, "timers-in-seconds-protobuf", b.Bytes())
}

// TestNetworkSummaries shows the histograms of network input, and no others, as
// summaries, unless a form is asked for.
func TestNetworkSummaries(t *testing.T) {
	st := newStore(store.Options{
		Naming: naming.Rules{NetworkSeconds: true},
		Histograms: []store.HistogramSetting{{
			Match: func(string) bool { return true }, Buckets: []float64{5, 500},
		}},
	})
	net := st.ScopeWith("", store.ScopeOptions{Network: true, Histograms: &store.HistogramForm{Quantiles: summaryQuantiles[:]}})
	timers := []*store.Histogram{
		net.Histogram("rt", store.Milliseconds), net.Histogram("a.b", store.Unspecified), net.Histogram("a-b", store.Unspecified),
		st.Root().Histogram("own", store.Milliseconds),
	}
	net.Histogram("idle", store.Milliseconds)
	for interval := range 2 {
		for _, h := range timers {
			for v := range uint64(10) {
				h.Record(100*uint64(interval) + v)
			}
		}
		st.Flush(store.FlushOptions{}).Close()
	}
	for name, form := range map[string]Buckets{"default": Default, "cumulative": Cumulative, "summary": Summary} {
		t.Run(name, func(t *testing.T) { checkForms(t, "network-summaries/"+name, st, Options{Buckets: form}) })
	}
}

// TestSecondsAreRoundedOnce checks that a rounded value is not divided by 1000,
// which would show.
func TestSecondsAreRoundedOnce(t *testing.T) {
	for ms, want := range map[float64]float64{
		102.236159: 0.102236159, 0.000345: 0.000000345, 5: 0.005, 0.1: 0.0001, -12.5: -0.0125, 0: 0,
		1e-9: 1e-12, 1e300: 1e297, 9.2e12: 9.2e9, math.Inf(1): math.Inf(1),
	} {
		if got := seconds(ms); got != want {
			t.Errorf("%v ms are %v s, want %v", ms, got, want)
		}
	}
	if got := seconds(math.NaN()); got == got {
		t.Errorf("not a number is %v", got)
	}
}

// TestProtobufSecondsAsInText has a bound and a sum that change if they are divided by 1000:
// the label le would differ between scrapes in the two formats.
func TestProtobufSecondsAsInText(t *testing.T) {
	st := newStore(store.Options{
		Naming: naming.Rules{NetworkSeconds: true},
		Histograms: []store.HistogramSetting{{
			Match: func(string) bool { return true }, Buckets: []float64{0.009},
		}},
	})
	st.ScopeWith("", store.ScopeOptions{Network: true}).Histogram("t", store.Milliseconds).RecordFloat(0.018, 1)
	st.Flush(store.FlushOptions{}).Close()
	var text, proto bytes.Buffer
	if err := errors.Join(Exposition(&text, st, Options{}), Protobuf(&proto, st, Options{})); err != nil {
		t.Fatal(err)
	}
	for _, x := range []float64{9e-06, 1.8e-05} {
		if !strings.Contains(text.String(), strconv.FormatFloat(x, 'g', -1, 64)) || !bytes.Contains(proto.Bytes(), protobuf.AppendDouble(nil, 2, x)) {
			t.Errorf("no %v in the text or the protobuf format:\n%s%q", x, &text, &proto)
		}
	}
}
