package server_test

import (
	"testing"

	"github.com/statsd-admin/statsd-admin/bootstrap"
)

// TestBuildNumbers checks that the node in /server_info has the version numbers of
// the build.
func TestBuildNumbers(t *testing.T) {
	c, err := bootstrap.Parse("a.yaml", []byte("node: {id: a}"), bootstrap.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for version, want := range map[string][3]uint32{
		"0b1f/0.4.1/Clean/RELEASE/go1.26":        {0, 4, 1},
		"0b1f/v12.0.7-rc.1/Clean/RELEASE/go1.26": {12, 0, 7},
		"0b1f/1.2.3+meta/Clean":                  {1, 2, 3},
		"unknown/unknown/Unknown/RELEASE/go1.26": {},
		"0b1f/1.2/Clean":                         {},
		"0b1f/1.x.3/Clean":                       {},
		"0b1f/1.2.-3/Clean":                      {},
		"0b1f/1.2.4294967296/Clean":              {},
		"1.2.3":                                  {},
		"":                                       {},
	} {
		cfg, err := c.Server(bootstrap.Startup{Version: version})
		if err != nil {
			t.Fatal(err)
		}
		if got := [3]uint32{cfg.Node.MajorNumber, cfg.Node.MinorNumber, cfg.Node.Fix}; got != want {
			t.Errorf("%q: %v, want %v", version, got, want)
		}
	}
}
