package xds

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	runtimev3 "github.com/envoyproxy/go-control-plane/envoy/service/runtime/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/statsd-admin/statsd-admin/upstream/config"
)

// TestResourcesExpire gives clusters a TTL of ten seconds. Those without further
// messages expire and one between them with a heartbeat expires later, whether the
// stream is up or not.
func TestResourcesExpire(t *testing.T) {
	for _, v := range variants {
		for state, broken := range map[string]bool{"up": false, "broken": true} {
			t.Run(v.name+"-"+state, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newRig(t, v.delta, nil)
					r.start()
					s := r.open()
					s.answer(t, answer{kind: clusterKind, version: "1", nonce: "n1", ttl: 10 * time.Second, resources: []proto.Message{edsCluster("a"), edsCluster("b"), edsCluster("c")}})
					s.answer(t, answer{kind: endpointKind, version: "1", nonce: "e1", resources: []proto.Message{endpointsOf("a", 1), endpointsOf("b", 2), endpointsOf("c", 3)}})
					three := func() string { return r.hosts("a") + " " + r.hosts("b") + " " + r.hosts("c") }
					time.Sleep(5 * time.Second)
					all := answer{kind: clusterKind, version: "1", nonce: "n2", ttl: 10 * time.Second, heartbeats: []string{"a", "b", "c"}}
					one := all
					one.nonce, one.heartbeats = "n3", []string{"b"}
					if v.delta {
						s.answer(t, one)
					} else { // a full answer would remove the others
						s.answer(t, all)
					}
					equal(t, "clusters", three(), ":1 :2 :3")
					if broken {
						r.refuse.Store(true)
						close(s.broken)
					}
					time.Sleep(6 * time.Second)
					synctest.Wait()
					want := ":1 :2 :3"
					if v.delta {
						want = "- :2 -"
					}
					equal(t, "clusters", three(), want)
					equal(t, "version", r.m.Version(), "1")
					time.Sleep(5 * time.Second)
					synctest.Wait()
					equal(t, "clusters", three(), "- - -")
					equal(t, "stats", r.counts("cluster_manager.cluster_removed"), "cluster_removed=3")
					r.stop()
				})
			})
		}
	}
}

// TestExpiryEndsWithAnAnswerWithoutOne checks that a resource sent again without a
// TTL stays, and that an expired one can return.
func TestExpiryEndsWithAnAnswerWithoutOne(t *testing.T) {
	inVariants(t, func(t *testing.T, r *rig, s *fakeStream) {
		give := func(nonce string, ttl time.Duration) {
			s.answer(t, answer{kind: clusterKind, version: nonce, nonce: nonce, ttl: ttl, resources: []proto.Message{edsCluster("a")}})
		}
		give("1", time.Second)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		equal(t, "cluster", r.hosts("a"), "-")
		give("2", time.Second)
		s.answer(t, answer{kind: endpointKind, version: "1", nonce: "e1", resources: []proto.Message{endpointsOf("a", 1)}})
		equal(t, "cluster", r.hosts("a"), ":1")
		give("3", 0)
		time.Sleep(time.Hour)
		synctest.Wait()
		equal(t, "cluster", r.hosts("a"), ":1")
	})
}

// TestExpiredAssignmentsAreNotHandedOn checks that hosts stay, but that new
// subscribers wait for the server.
func TestExpiredAssignmentsAreNotHandedOn(t *testing.T) {
	inVariants(t, func(t *testing.T, r *rig, s *fakeStream) {
		s.answer(t, answer{kind: clusterKind, version: "1", nonce: "n1", resources: []proto.Message{edsCluster("a")}})
		s.answer(t, answer{kind: endpointKind, version: "e", nonce: "n2", ttl: time.Second, resources: []proto.Message{endpointsOf("a", 1)}})
		time.Sleep(2 * time.Second)
		synctest.Wait()
		equal(t, "hosts", r.hosts("a"), ":1")
		equal(t, "stats", r.counts("cluster.a.update_empty", "cluster.a.config_reload", "xds.resources"), "update_empty=1 config_reload=1 resources=1")
		s.answer(t, answer{kind: clusterKind, version: "2", nonce: "n3", resources: []proto.Message{edsCluster("a", timeout(2*time.Second))}})
		equal(t, "stats", r.counts("cluster.a.assignment_use_cached", "cluster_manager.warming_clusters"), "assignment_use_cached=0 warming_clusters=1")
	})
}

// TestRemovedResourcesDoNotExpire: what the server has removed does not end a second time.
func TestRemovedResourcesDoNotExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, true, nil)
		r.start()
		s := r.open()
		s.answer(t, answer{kind: clusterKind, version: "1", nonce: "n1", resources: []proto.Message{edsCluster("a")}})
		s.answer(t, answer{kind: endpointKind, version: "e", nonce: "n2", ttl: time.Second, resources: []proto.Message{endpointsOf("a", 1)}})
		s.answer(t, answer{kind: endpointKind, version: "f", nonce: "n3", removed: []string{"a"}})
		equal(t, "removed", r.counts("cluster.a.update_empty"), "update_empty=1")
		time.Sleep(time.Minute)
		synctest.Wait()
		equal(t, "later", r.counts("cluster.a.update_empty"), "update_empty=1")
		r.stop()
	})
}

func TestLayersExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, false, func(c *Config) {
			c.CDS = nil
			c.Layers = []Layer{{Name: "l", Source: config.ConfigSource{Kind: config.SourceADS}}}
		})
		r.start()
		s := r.open()
		s.says()
		values, err := structpb.NewStruct(map[string]any{"k": 1.0})
		if err != nil {
			t.Fatal(err)
		}
		s.answer(t, answer{kind: layerKind, version: "1", nonce: "1", ttl: time.Second, resources: []proto.Message{&runtimev3.Runtime{Name: "l", Layer: values}}})
		size := func() int {
			got, _ := r.layers.Load("l")
			m, _ := got.(map[string]any)
			return len(m)
		}
		if n := size(); n != 1 {
			t.Errorf("%d values", n)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if n := size(); n != 0 {
			t.Errorf("%d values after their time", n)
		}
		r.stop()
	})
}

func TestServersKnowThatResourcesExpire(t *testing.T) {
	for _, given := range [][]string{nil, {"x"}, {ttlFeature}} {
		want := 1
		if len(given) > 0 && given[0] == "x" {
			want = 2
		}
		if got := clientFeatures(given); len(got) != want || got[len(got)-1] != ttlFeature {
			t.Errorf("%q: %q", given, got)
		}
	}
	if _, err := unpackEnvelope([]byte{6<<3 | 2, 1, 0xff}, 0, ""); !errors.Is(err, errMalformed) {
		t.Errorf("a time that is none: %v", err)
	}
}
