package outlier

import (
	"math"
	"net/netip"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/golden"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/host"
)

func TestEventsAsJSON(t *testing.T) {
	h := host.New(host.Spec{Address: config.Address{IP: netip.MustParseAddrPort("[fe80::1]:80")}})
	at := time.Date(2026, 1, 2, 3, 4, 5, 678901234, time.FixedZone("", 3600))
	var got []byte
	for _, k := range Kinds() {
		e := Event{Time: at, Host: h, Eject: true, Kind: k, Enforced: k != SuccessRate, Ejections: uint64(k), SinceLast: -1, Rate: 12.9, Average: 98.7, Threshold: 55.5}
		got = e.AppendJSON(got, "a \"b\"\n\x00")
	}
	back := Event{Time: at.Truncate(time.Second), Host: host.New(host.Spec{Address: config.Address{Pipe: "/run/s"}}), Ejections: 3, SinceLast: 1999 * time.Millisecond}
	got = back.AppendJSON(got, "c")
	odd := Event{Time: at, Host: h, Eject: true, Kind: SuccessRate, Rate: math.Inf(1), Average: math.NaN(), Threshold: -7}
	got = odd.AppendJSON(got, "c")
	golden.Check(t, "events", got)
}

func TestEventsHoldTheRatesThatLedToThem(t *testing.T) {
	r := newRig(6, func(s *config.Outlier) {
		s.MaxEjectionPercent, s.FailurePercentageThreshold, s.EnforcingFailurePercentage = 100, 85, 100
	}, func() uint64 { return 0 })
	for _, h := range r.hosts[1:] {
		results(h, 100, 0)
	}
	results(r.hosts[0], 4, 0)
	for range 24 { // bad answers, but never many in a row
		results(r.hosts[0], 0, 4)
		results(r.hosts[0], 1, 0)
	}
	r.d.Tick(time.Now())
	if len(r.events) == 0 {
		t.Fatal("no host was ejected")
	}
	e := r.events[0]
	rates := r.d.Rates()
	if e.Kind != SuccessRate || e.Rate != r.hosts[0].SuccessRate() || e.Average != rates.Average || e.Threshold != rates.Threshold || e.Rate >= e.Threshold {
		t.Errorf("event %+v, want the rate %v, the average %v and the threshold %v", e, r.hosts[0].SuccessRate(), rates.Average, rates.Threshold)
	}
}
