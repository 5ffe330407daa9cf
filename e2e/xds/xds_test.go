package xds

import (
	"strings"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/statsd-admin/statsd-admin/internal/waittest"
)

// each runs a test in all ways to follow a control plane.
func each(t *testing.T, f func(t *testing.T, p *plane)) {
	for _, tt := range []struct {
		name       string
		ads, delta bool
	}{{"sotw-aggregated", true, false}, {"delta-aggregated", true, true}, {"sotw-separate", false, false}, {"delta-separate", false, true}} {
		t.Run(tt.name, func(t *testing.T) { f(t, newPlane(t, tt.ads, tt.delta)) })
	}
}

func TestSnapshotsAreFollowed(t *testing.T) {
	each(t, func(t *testing.T, p *plane) {
		p.set("1", map[string][]uint32{"a": {1001, 1002}, "b": {2001}}, nil)
		x := newProxy(t, p)
		select {
		case <-x.m.Ready():
		case <-time.After(time.Minute):
			t.Fatalf("not ready: %s", x.shows())
		}
		waittest.Equal(t, "first", "a=1001,1002 b=2001", x.shows)
		p.set("2", map[string][]uint32{"a": {1002, 1003}, "b": {2001}}, nil)
		waittest.Equal(t, "hosts changed", "a=1002,1003 b=2001", x.shows)
		p.set("3", map[string][]uint32{"a": {1002, 1003}, "b": {2001}, "c": {3001}}, nil)
		waittest.Equal(t, "cluster added", "a=1002,1003 b=2001 c=3001", x.shows)
		if got := x.value("cluster_manager.cluster_modified"); got != "0" {
			t.Errorf("%s clusters modified, want none: they did not change", got)
		}
		p.set("4", map[string][]uint32{"c": {3001}}, nil)
		waittest.Equal(t, "clusters removed", "c=3001", x.shows)
		p.set("5", map[string][]uint32{"c": {3001}}, func(c *clusterv3.Cluster) { c.ConnectTimeout = durationpb.New(7 * time.Second) })
		waittest.Equal(t, "cluster modified", "1", func() string { return x.value("cluster_manager.cluster_modified") })
		waittest.Equal(t, "new version serves", "7s", func() string { return x.m.Cluster("c").Current().Config().ConnectTimeout.String() })
		if got := x.shows(); got != "c=3001" {
			t.Errorf("clusters %s, want c=3001", got)
		}
		if p.problem() != "" {
			t.Errorf("problem %s, want none", p.problem())
		}
	})
}

func TestControlPlaneLearnsWhatIsBad(t *testing.T) {
	each(t, func(t *testing.T, p *plane) {
		p.set("1", map[string][]uint32{"a": {1001}, "b": {2001}}, nil)
		x := newProxy(t, p)
		waittest.Equal(t, "first", "a=1001 b=2001", x.shows)
		p.set("2", map[string][]uint32{"a": {1001}, "b": {2001}, "c": {3001}}, func(c *clusterv3.Cluster) {
			if c.Name == "b" {
				c.ConnectTimeout = durationpb.New(-time.Second)
			}
		})
		const problem = `cluster "b": connect_timeout: -1s must be greater than 0s`
		waittest.Equal(t, "refusal", problem, p.problem)
		waittest.Equal(t, "the good ones", "a=1001 b=2001 c=3001", x.shows)
		for f := range x.x.Failures {
			if f.Name != "b" || f.Details != problem {
				t.Errorf("cluster %q is refused: %s", f.Name, f.Details)
			}
		}
		p.set("3", map[string][]uint32{"a": {1001}, "b": {2002}, "c": {3001}}, nil)
		waittest.Equal(t, "mended", "a=1001 b=2002 c=3001", x.shows)
		p.set("4", map[string][]uint32{"a": {99999}, "b": {2003}, "c": {3001}}, nil)
		waittest.Equal(t, "bad hosts", "true", func() string {
			if strings.Contains(p.problem(), `load assignment "a"`) && strings.Contains(p.problem(), "99999 exceeds 65535") {
				return "true"
			}
			return p.problem()
		})
		waittest.Equal(t, "hosts", "a=1001 b=2003 c=3001", x.shows)
	})
}

func TestHostsStayWhileTheControlPlaneIsAway(t *testing.T) {
	each(t, func(t *testing.T, p *plane) {
		p.set("1", map[string][]uint32{"a": {1001}, "b": {2001}}, nil)
		x := newProxy(t, p)
		waittest.Equal(t, "first", "a=1001 b=2001", x.shows)
		p.stop()
		state := "control_plane.connected_state"
		if !p.ads {
			state = "cluster_manager.cds." + state
		}
		waittest.Equal(t, "state", "0", func() string { return x.value(state) })
		waittest.Equal(t, "failure of a", "true", func() string {
			if got := x.value("cluster.a.update_failure"); got == "0" {
				return got
			}
			return "true"
		})
		if got := x.shows(); got != "a=1001 b=2001" {
			t.Errorf("clusters %s, want those from before", got)
		}
		p.start() // knows nothing of the time before
		p.set("1", map[string][]uint32{"a": {1001}, "b": {2001}}, nil)
		waittest.Equal(t, "state", "1", func() string { return x.value(state) })
		if got := x.shows(); got != "a=1001 b=2001" {
			t.Errorf("clusters %s, want those from before", got)
		}
		p.set("2", map[string][]uint32{"a": {1002}}, nil)
		waittest.Equal(t, "later", "a=1002", x.shows)
	})
}
