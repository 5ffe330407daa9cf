package render

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/expolint"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// hosts yields the hosts of three clusters, reusing one variable.
func hosts(yield func(*Endpoint) bool) {
	stats := func(n uint64) []EndpointStat {
		return []EndpointStat{{"rq_active", true, 0}, {"cx_total", false, n}, {"cx_active", true, n / 2}, {"rq_error", false, 0}}
	}
	var shown Endpoint
	for _, e := range []Endpoint{
		{"checkout", "10.0.0.2:80", stats(4)},
		{"checkout", "10.0.0.10:80", stats(1 << 63)},
		{"checkout", "[2001:db8::1]:443", stats(0)},
		{"at:the.edge", "/run/<b>.sock", stats(6)},
		{"checkout", "10.0.0.2:80", stats(10)}, // again: another priority
	} {
		shown = e
		if !yield(&shown) {
			return
		}
	}
}

func endpointStore(t *testing.T) *store.Store {
	t.Helper()
	e, err := tags.New(tags.Config{UseDefaults: true, CommandLine: []tags.Tag{{Name: "zone", Value: "eu\"1\""}, {Name: "empty", Value: ""}}})
	if err != nil {
		t.Fatal(err)
	}
	st := newStore(store.Options{Tags: e})
	st.Root().Text("edge.release").Set("r42")
	st.Root().Counter("cluster.checkout.upstream_cx_total").Add(14)
	st.Root().Gauge("edge.light").Set(1)
	st.Root().Histogram("edge.time", store.Unspecified)
	return st
}

func TestEndpoints(t *testing.T) {
	st := endpointStore(t)
	filter, err := NewFilter(RE2, `checkout\.endpoint\.10.*_total$|light`, FilterLimits{})
	if err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]Options{
		"all":      {TextReadouts: true},
		"used":     {UsedOnly: true},
		"counters": {Type: Counters},
		"gauges":   {Type: Gauges},
		"readouts": {Type: TextReadouts},
		"hidden":   {Hidden: HiddenOnly},
		"filtered": {Filter: filter},
		"escaped":  {Escaping: EscapeValues},
	} {
		o.Endpoints = hosts
		t.Run(name, func(t *testing.T) { checkForms(t, "endpoints/"+name, st, o) })
	}
}

// TestEndpointsThatMeetStats has received stats with the metric names of host
// statistics: both are shown.
func TestEndpointsThatMeetStats(t *testing.T) {
	st := newStore(store.Options{})
	network := st.ScopeWith("", store.ScopeOptions{Network: true})
	network.Counter("proxy.cluster.endpoint.cx_total").Add(1)
	network.Gauge("proxy_cluster_endpoint_cx_total_counter").Set(2)
	network.Gauge("proxy_cluster_endpoint_rq").Set(3)
	o := Options{Endpoints: func(yield func(*Endpoint) bool) {
		yield(&Endpoint{"c", "1.2.3.4:5", []EndpointStat{{"cx_total", false, 7}, {"rq_total", false, 8}, {"both", false, 9}, {"both", true, 10}}})
	}}
	checkForms(t, "endpoints/meet", st, o)
	var b bytes.Buffer
	if err := Exposition(&b, st, o); err != nil {
		t.Fatal(err)
	}
	checkExposition(t, b.String(), expolint.Text004)
}

// TestEndpointsEndWithTheBudget checks that the budget of a filter includes the
// names of hosts.
func TestEndpointsEndWithTheBudget(t *testing.T) {
	now := time.Unix(0, 0)
	limits := FilterLimits{Budget: time.Second, Now: func() time.Time { now = now.Add(300 * time.Millisecond); return now }}
	for form, write := range forms() {
		filter, err := NewFilter(RE2, "c(x|y)", limits)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		err = write(&bytes.Buffer{}, newStore(store.Options{}), Options{Filter: filter, Endpoints: func(yield func(*Endpoint) bool) {
			for n = 0; n < 1000; n++ {
				if !yield(&Endpoint{"c", strings.Repeat("1", n), []EndpointStat{{"cx_total", false, 1}}}) {
					return
				}
			}
		}})
		if !errors.Is(err, ErrTooExpensive) || n > 100 {
			t.Errorf("%s: %v after %d hosts", form, err, n)
		}
	}
}

// TestRepeatedHostsAreInOrder: the statistics of a host that is listed twice are in order.
func TestRepeatedHostsAreInOrder(t *testing.T) {
	o := Options{Endpoints: func(yield func(*Endpoint) bool) {
		_ = yield(&Endpoint{"x", "a", []EndpointStat{{"rq_total", false, 5}}}) && yield(&Endpoint{"x", "a", []EndpointStat{{"cx_total", false, 3}}})
	}}
	var b bytes.Buffer
	if err := Text(&b, newStore(store.Options{}), o); err != nil {
		t.Fatal(err)
	}
	if want := "cluster.x.endpoint.a.cx_total: 3\ncluster.x.endpoint.a.rq_total: 5\n"; b.String() != want {
		t.Errorf("got\n%swant\n%s", &b, want)
	}
}

// TestRepeatedHostsAddUp: repeated hosts and repeated statistics are added up, wherever they
// stand in the order of names.
func TestRepeatedHostsAddUp(t *testing.T) {
	for _, repeated := range []string{"a", "b", "c"} {
		o := Options{Endpoints: func(yield func(*Endpoint) bool) {
			for _, address := range []string{repeated, "a", "b", "c", repeated} {
				stats := []EndpointStat{{"cx_total", false, 1}, {"cx_total", true, 8}, {"cx_total", false, 2}}
				if address != "b" {
					stats = append(stats, EndpointStat{"rq_total", false, 5})
				}
				if !yield(&Endpoint{"x", address, stats}) {
					return
				}
			}
		}}
		var b bytes.Buffer
		if err := Text(&b, newStore(store.Options{}), o); err != nil {
			t.Fatal(err)
		}
		var want strings.Builder
		for _, address := range []string{"a", "b", "c"} {
			times := 1
			if address == repeated {
				times = 3
			}
			fmt.Fprintf(&want, "cluster.x.endpoint.%s.cx_total: %d\n", address, 3*times)
			if address != "b" {
				fmt.Fprintf(&want, "cluster.x.endpoint.%s.rq_total: %d\n", address, 5*times)
			}
			fmt.Fprintf(&want, "cluster.x.endpoint.%s.cx_total: %d\n", address, 8*times)
		}
		if b.String() != want.String() {
			t.Errorf("%s is repeated:\n%swant\n%s", repeated, &b, &want)
		}
	}
}
