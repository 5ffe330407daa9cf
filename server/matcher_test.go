package server_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/statsd-admin/statsd-admin/bootstrap"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// TestStatsMatcher checks which stats exist under each form of stats_matcher.
func TestStatsMatcher(t *testing.T) {
	names := []string{"cluster.a.rq", "Cluster.b.rq", "edge.rq", "edge.rq_total", "rq.zone.eu"}
	for _, tt := range []struct {
		matcher string
		want    []string
	}{
		{"{reject_all: false}", names},
		{"{reject_all: true}", nil},
		{"{exclusion_list: {patterns: [{prefix: cluster.}]}}", names[1:]},
		{"{exclusion_list: {patterns: [{prefix: CLUSTER., ignore_case: true}]}}", names[2:]},
		{"{exclusion_list: {patterns: [{exact: edge.rq}, {suffix: .eu}]}}", []string{names[0], names[1], names[3]}},
		{"{exclusion_list: {patterns: [{contains: ge.r}]}}", []string{names[0], names[1], names[4]}},
		{"{inclusion_list: {patterns: [{safe_regex: {regex: 'edge\\.rq'}}]}}", names[2:3]}, // all of the name
		{"{inclusion_list: {patterns: [{safe_regex: {google_re2: {}, regex: '.*\\.zone\\.eu'}}, {suffix: a.rq}]}}", []string{names[0], names[4]}},
	} {
		cfg := fromText(t, fmt.Sprintf("stats_config: {stats_matcher: %s}\n", tt.matcher))
		r := cfg.Store.Root()
		var got []string
		for _, n := range names[:4] {
			if _, err := r.TryCounter(n); err == nil {
				got = append(got, n)
			}
		}
		if _, err := r.TryGauge("rq", tags.Tag{Name: "zone", Value: "eu"}); err == nil {
			got = append(got, names[4])
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.matcher, got, tt.want)
		}
		if _, err := r.TryGaugeWithMode("cluster.hidden", store.HiddenAccumulate); err != nil {
			t.Errorf("%s: a hidden gauge: %v", tt.matcher, err)
		}
	}
}

// TestTagWithoutRule checks that a tag with neither a rule nor the name of a default
// rule prevents the start.
func TestTagWithoutRule(t *testing.T) {
	c, err := bootstrap.Parse("boot.yaml", []byte("stats_config: {stats_tags: [{tag_name: shoe_size}]}\n"), bootstrap.Options{})
	if err != nil {
		t.Fatal(err)
	}
	const want = "stats_config.stats_tags: No regex specified for tag specifier and no default regex for name: 'shoe_size'"
	if _, err := c.Server(bootstrap.Startup{}); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}
