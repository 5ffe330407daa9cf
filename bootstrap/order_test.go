package bootstrap

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// rotations returns list with each of its elements first.
func rotations(list []string) (all [][]string) {
	for i := range list {
		all = append(all, append(slices.Clone(list[i:]), list[:i]...))
	}
	return all
}

// TestFieldsInAnyOrder: wherever unknown, repeated, empty and refused fields are, each is
// reported, and the others count.
func TestFieldsInAnyOrder(t *testing.T) {
	for _, lines := range rotations([]string{"stats_flush_interval: 7s", "statsFlushInterval: 8s", "zz: 1", "admin:", "statsd: {zz: 1, prefix: [], ttl: {zz: 1, gauge: soon}}", "yy: 2"}) {
		text := strings.Join(lines, "\n") + "\n"
		_, err := Parse("a.yaml", []byte(text), Options{})
		var list *Errors
		if !errors.As(err, &list) {
			t.Fatalf("%s%v", text, err)
		}
		var got []string
		for _, e := range list.List {
			got = append(got, e.Field)
		}
		slices.Sort(got)
		if want := "statsd.prefix statsd.ttl.gauge statsd.ttl.zz statsd.zz stats_flush_interval yy zz"; !slices.Equal(got, sorted(want)) {
			t.Errorf("%serrors of %q, want %s", text, got, want)
		}
	}
	for _, lines := range rotations([]string{"stats_flush_interval: 7s", "zz: 1", "admin:", "yy: 2", "statsd: {zz: 1, prefix: p}"}) {
		text := strings.Join(lines, "\n") + "\n"
		c, err := Parse("a.yaml", []byte(text), Options{AllowUnknownFields: true})
		if err != nil {
			t.Fatalf("%s%v", text, err)
		}
		if c.Stats.FlushInterval != 7*time.Second || c.StatsD.Prefix != "p" || len(c.UnknownFields) != 3 {
			t.Errorf("%sinterval %v, prefix %q, unknown %q", text, c.Stats.FlushInterval, c.StatsD.Prefix, c.UnknownFields)
		}
	}
}

func sorted(words string) []string {
	list := strings.Fields(words)
	slices.Sort(list)
	return list
}

// TestOverlaysInAnyOrder: a field of the overlay replaces its namesake, in either spelling
// and in any order, and the rest of both files stays.
func TestOverlaysInAnyOrder(t *testing.T) {
	base := []string{"stats_flush_interval: 7s", "node: {id: a, cluster: b}", "statsd: {prefix: p, ttl: {gauge: 1s, set: 2s}}"}
	over := []string{"node: {cluster: c}", "statsFlushInterval: 9s", "statsd: {ttl: {set: 3s, counter: 4s}}"}
	for _, below := range rotations(base) {
		for _, above := range rotations(over) {
			c, err := parse("a.yaml", []byte(strings.Join(below, "\n")), parseYAML, strings.Join(above, "\n"), Options{})
			if err != nil {
				t.Fatal(err)
			}
			got := fmt.Sprintf("%v %s %s %s %v %v %v", c.Stats.FlushInterval, c.Node.ID, c.Node.Cluster, c.StatsD.Prefix, c.StatsD.TTL.Gauge, c.StatsD.TTL.Set, c.StatsD.TTL.Counter)
			if want := "9s a c p 1s 3s 4s"; got != want {
				t.Errorf("%q with %q: %s, want %s", below, above, got, want)
			}
		}
	}
	// A field also replaces the fields that it excludes.
	readOnly := mustParse(t, "admin: {mode: read_only}").Admin.Mode
	const socket = "socket_address: {address: 127.0.0.1, port_value: 9}"
	for _, below := range rotations([]string{"profile_path: /a", "address: {" + socket + "}", "mode: read_only"}) {
		for _, above := range rotations([]string{"address: {pipe: {path: /p}}", "profile_path: /b"}) {
			text := func(lines []string) string { return "admin: {" + strings.Join(lines, ", ") + "}\n" }
			c, err := parse("a.yaml", []byte(text(below)), parseYAML, text(above), Options{})
			if err != nil {
				t.Fatal(err)
			}
			if a := &c.Admin; a.Address.String() != "/p" || a.ProfilePath != "/b" || a.Mode != readOnly {
				t.Errorf("%q with %q: address %v, profile %q, mode %v", below, above, a.Address, a.ProfilePath, a.Mode)
			}
		}
	}
}

// TestHeadersInAnyOrder: a refused header keeps no other one from being checked, and its
// value is not shown.
func TestHeadersInAnyOrder(t *testing.T) {
	form := "sinks: [{name: o, otlp: {url: \"http://h/\", headers: {%s}}}]\n"
	for _, list := range rotations([]string{`"a b": hush`, `x-bad: "hush\n"`, `x-good: y`, `x-list: [hush]`}) {
		_, err := Parse("a.yaml", fmt.Appendf(nil, form, strings.Join(list, ", ")), Options{})
		if n := strings.Count(fmt.Sprint(err), "not a header"); n != 3 || strings.Contains(fmt.Sprint(err), "hush") {
			t.Errorf("%q: %v", list, err)
		}
	}
	for _, list := range rotations([]string{"x-a: 1", "x-b: 2", "x-c: 3"}) {
		c := mustParse(t, fmt.Sprintf(form, strings.Join(list, ", ")))
		if got := fmt.Sprint(c.Sinks[0].OTLP.HTTP.Headers); got != "map[X-A:1 X-B:2 X-C:3]" {
			t.Errorf("%q: %s", list, got)
		}
	}
}
