// Package workload creates the names and values that the benchmarks of this module
// and of other libraries share, so that all do the same work.
package workload

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// Clusters returns n names of the form cluster.service_N.stat, 100 per service, as a
// proxy has them for its upstreams. With a million names they have 77 bytes on
// average.
func Clusters(n int) []string {
	names := make([]string, n)
	stats := make([]string, 100)
	for i := range stats {
		stats[i] = "upstream_rq_with_a_name_of_usual_length_for_a_statistic_" + strconv.Itoa(i)
	}
	for i := range names {
		names[i] = "cluster.service_" + strconv.Itoa(i/100) + "." + stats[i%100]
	}
	return names
}

// Dynamic returns n names of 60 bytes, as composed from requests.
func Dynamic(n int) []string {
	names := make([]string, n)
	for i := range names {
		number := strconv.Itoa(i / 100)
		stat := strconv.Itoa(i % 100)
		name := "cluster.service_" + strings.Repeat("0", 8-len(number)) + number + ".upstream_rq_some_longer_name_" + stat
		names[i] = name + strings.Repeat("x", 60-len(name))
	}
	return names
}

// Spread reorders s deterministically so that neighbors were far apart. The length
// of s must not be a multiple of 7919. Counters requested in this order are not in
// memory order.
func Spread[T any](s []T) {
	from := slices.Clone(s)
	at := 0
	for i := range s {
		s[i] = from[at]
		at = (at + 7919) % len(s)
	}
}

// Next returns the index after i in a cycle through n.
func Next(i, n int) int {
	if i++; i == n {
		return 0
	}
	return i
}

// The dimensions of Envoy's stats handler benchmark.
const (
	PublicScopes   = 10_000
	PublicCounters = 100         // in each scope
	PublicText     = 117_789_000 // bytes of the plain text of all
)

// PublicScope returns the prefix of scope s of that benchmark.
func PublicScope(s int) string { return "scope_" + strconv.Itoa(s) }

// PublicCounter returns the name of counter c in each scope.
func PublicCounter(c int) string { return strings.Repeat("a", 100) + "_" + strconv.Itoa(c) }

// Lognormal returns n whole numbers around 1000, mostly within three octaves,
// determined by seed.
func Lognormal(n int, seed uint64) []uint64 {
	r := rand.New(rand.NewPCG(seed, 1))
	v := make([]uint64, n)
	for i := range v {
		v[i] = uint64(1000 * math.Exp(r.NormFloat64()))
	}
	return v
}

// Endpoint is the set of tags that a request is counted by.
type Endpoint struct{ Region, Service, Status string }

// Endpoints returns n distinct endpoints.
func Endpoints(n int) []Endpoint {
	es := make([]Endpoint, n)
	for i := range es {
		es[i] = Endpoint{
			Region:  "eu-west-" + strconv.Itoa(i%10),
			Service: "checkout-" + strconv.Itoa(i/100),
			Status:  strconv.Itoa(200 + i/10%10),
		}
	}
	return es
}

// Compose copies names into contiguous memory, like a caller that composes each one
// just before it asks.
func Compose(names []string) {
	for i := range names {
		names[i] = strings.Clone(names[i])
	}
}

// ComposeEndpoints is [Compose] for the parts of endpoints.
func ComposeEndpoints(es []Endpoint) {
	for i := range es {
		e := &es[i]
		e.Region, e.Service, e.Status = strings.Clone(e.Region), strings.Clone(e.Service), strings.Clone(e.Status)
	}
}
