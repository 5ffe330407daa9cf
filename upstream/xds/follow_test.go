package xds

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cespare/xxhash/v2"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/statsd-admin/statsd-admin/upstream/config/decode"
)

func TestClustersAndHostsOverTheAggregatedStream(t *testing.T) {
	tests := []struct {
		delta                              bool
		method                             string
		hello, clusters, hosts, less, gone string
	}{
		{
			false, "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources",
			"Cluster node=node",
			"Cluster node=node version=1 nonce=n1\nClusterLoadAssignment node=node names=a,b-service",
			"ClusterLoadAssignment node=node version=e1 names=a,b-service nonce=n2",
			"Cluster node=node version=2 nonce=n3\nClusterLoadAssignment node=node version=e1 names=a nonce=n2",
			"Cluster node=node version=3 nonce=n4\nClusterLoadAssignment node=node version=e1 nonce=n2",
		},
		{
			true, "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources",
			"Cluster node=node",
			"Cluster nonce=n1\nClusterLoadAssignment subscribe=a,b-service",
			"ClusterLoadAssignment nonce=n2",
			"Cluster nonce=n3\nClusterLoadAssignment unsubscribe=b-service",
			"Cluster nonce=n4\nClusterLoadAssignment unsubscribe=a",
		},
	}
	for i, tt := range tests {
		t.Run(variants[i].name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, tt.delta, nil)
				r.start()
				s := r.open()
				equal(t, "method", s.method, tt.method)
				equal(t, "hello", s.says(), tt.hello)

				equal(t, "after the clusters", s.answer(t, answer{kind: clusterKind, version: "1", nonce: "n1", resources: []proto.Message{
					edsCluster("a"), edsCluster("b", named("b-service")),
				}}), tt.clusters)
				select {
				case <-r.m.Ready():
					t.Error("ready before the hosts of the first clusters are there")
				default:
				}
				equal(t, "after the hosts", s.answer(t, answer{kind: endpointKind, version: "e1", nonce: "n2", resources: []proto.Message{
					endpointsOf("a", 1, 2), endpointsOf("b-service", 3),
				}}), tt.hosts)
				select {
				case <-r.m.Ready():
				default:
					t.Error("not ready though all hosts are there")
				}
				equal(t, "hosts", r.hosts("a")+" "+r.hosts("b"), ":1 :2 :3")
				equal(t, "version", r.m.Version(), "1")
				equal(t, "stats", r.counts("cluster_manager.cds.update_success", "cluster_manager.cds.update_attempt", "cluster_manager.cds.config_reload",
					"cluster.a.update_success", "cluster.a.update_rejected", "control_plane.connected_state", "cluster_manager.cluster_added"),
					"update_success=1 update_attempt=2 config_reload=1 update_success=1 update_rejected=0 connected_state=1 cluster_added=2")

				less := answer{kind: clusterKind, version: "2", nonce: "n3", resources: []proto.Message{edsCluster("a")}}
				none := answer{kind: clusterKind, version: "3", nonce: "n4"}
				if tt.delta {
					less.resources, less.removed = nil, []string{"b"}
					none.removed = []string{"a"}
				}
				equal(t, "after a removal", s.answer(t, less), tt.less)
				equal(t, "hosts", r.hosts("a")+" "+r.hosts("b"), ":1 :2 -")
				equal(t, "after all are removed", s.answer(t, none), tt.gone)
				equal(t, "clusters", r.hosts("a")+r.hosts("b"), "--")
				r.stop()
			})
		})
	}
}

func TestUnchangedResourcesDisturbNothing(t *testing.T) {
	inVariants(t, func(t *testing.T, r *rig, s *fakeStream) {
		for _, version := range []string{"1", "2"} {
			s.answer(t, answer{kind: clusterKind, version: version, nonce: "c" + version, resources: []proto.Message{edsCluster("a")}})
			s.answer(t, answer{kind: endpointKind, version: version, nonce: "e" + version, resources: []proto.Message{endpointsOf("a", 1)}})
		}
		equal(t, "stats", r.counts("cluster_manager.cluster_added", "cluster_manager.cluster_modified", "cluster_manager.cds.config_reload",
			"cluster_manager.cds.update_success", "cluster.a.update_success", "cluster.a.update_no_rebuild", "cluster.a.config_reload"),
			"cluster_added=1 cluster_modified=0 config_reload=1 update_success=2 update_success=2 update_no_rebuild=1 config_reload=1")
	})
}

func TestBadClustersAreRefusedOneByOne(t *testing.T) {
	const problem = `cluster \"bad\": connect_timeout: -1s must be greater than 0s`
	inVariants(t, func(t *testing.T, r *rig, s *fakeStream) {
		s.answer(t, answer{kind: clusterKind, version: "1", nonce: "n1", resources: []proto.Message{edsCluster("a"), edsCluster("bad")}})
		s.answer(t, answer{kind: endpointKind, version: "e", nonce: "n2", resources: []proto.Message{endpointsOf("a", 1), endpointsOf("bad", 2)}})
		reply := s.answer(t, answer{kind: clusterKind, version: "2", nonce: "n3", resources: []proto.Message{
			edsCluster("bad", timeout(-time.Second)), edsCluster("a"), edsCluster("c"), edsCluster("c"),
		}})
		want := `Cluster node=node version=1 nonce=n3 error="` + problem + `\nxds: resource \"c\" occurs twice in one response; the first is used"` +
			"\nClusterLoadAssignment node=node version=e names=a,bad,c nonce=n2"
		if r.delta {
			want = `Cluster nonce=n3 error="` + problem + `\nxds: resource \"c\" occurs twice in one response; the first is used"` +
				"\nClusterLoadAssignment subscribe=c"
		}
		equal(t, "reply", reply, want)
		equal(t, "hosts", r.hosts("a")+r.hosts("bad"), ":1:2")
		equal(t, "version", r.m.Version(), "2") // c was applied
		equal(t, "stats", r.counts("cluster_manager.cds.update_success", "cluster_manager.cds.update_rejected", "cluster_manager.cds.update_attempt"),
			"update_success=1 update_rejected=1 update_attempt=3")
		var failed []string
		for f := range r.c.Failures {
			failed = append(failed, f.Name, f.Version, f.Config.GetTypeUrl())
			if want := time.Now().Add(-gatherTime); !f.Attempt.Equal(want) {
				t.Errorf("attempt %v, want %v", f.Attempt, want)
			}
		}
		if !slices.Equal(failed, []string{"bad", "2", clusterKind.typeURL()}) {
			t.Errorf("failures %q", failed)
		}
		s.answer(t, answer{kind: clusterKind, version: "3", nonce: "n4", resources: []proto.Message{edsCluster("bad"), edsCluster("a"), edsCluster("c")}})
		for f := range r.c.Failures {
			t.Errorf("cluster %q still counts as refused", f.Name)
		}
	})
}

func TestStreamIsOpenedAgain(t *testing.T) {
	hello := map[bool]string{
		false: "Cluster node=node version=1\nClusterLoadAssignment node=node version=e names=a",
		true:  "Cluster node=node initial=a:1\nClusterLoadAssignment subscribe=a initial=a:e",
	}
	inVariants(t, func(t *testing.T, r *rig, s *fakeStream) {
		s.answer(t, answer{kind: clusterKind, version: "1", nonce: "n1", resources: []proto.Message{edsCluster("a")}})
		s.answer(t, answer{kind: endpointKind, version: "e", nonce: "n2", resources: []proto.Message{endpointsOf("a", 1)}})

		r.refuse.Store(true)
		close(s.broken)
		synctest.Wait()
		equal(t, "state", r.counts("control_plane.connected_state", "cluster.a.update_failure", "cluster_manager.cds.update_failure"),
			"connected_state=0 update_failure=1 update_failure=1")
		equal(t, "hosts", r.hosts("a"), ":1")
		time.Sleep(firstDelay) // the largest random part of it
		synctest.Wait()
		equal(t, "failures", r.counts("cluster.a.update_failure"), "update_failure=2")
		r.refuse.Store(false)
		time.Sleep(firstDelay) // at most twice that
		equal(t, "hello again", r.open().says(), hello[r.delta])
		equal(t, "state", r.counts("control_plane.connected_state"), "connected_state=1")
		equal(t, "hosts", r.hosts("a"), ":1")
	})
}

func TestBackoffDoublesUpToItsEnd(t *testing.T) {
	b := backoff{first: firstDelay, last: lastDelay}
	b.rand = func() uint64 { return uint64(b.most) - 1 }
	var got []time.Duration
	for range 9 {
		got = append(got, b.next())
	}
	want := []time.Duration{500, 1000, 2000, 4000, 8000, 16000, 30000, 30000, 30000}
	for i := range want {
		if got[i] != want[i]*time.Millisecond {
			t.Errorf("delay %d is %v, want %v", i, got[i], want[i]*time.Millisecond)
		}
	}
	b.reset()
	if d := b.next(); d != firstDelay {
		t.Errorf("%v after a reset, want %v", d, firstDelay)
	}
	b.rand = func() uint64 { return 0 }
	if d := b.next(); d <= 0 {
		t.Errorf("delay %v, want more than 0", d)
	}
}

func TestFirstAnswerIsNotWaitedForLongerThanAllowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, false, nil)
		r.start()
		s := r.open()
		s.answer(t, answer{kind: clusterKind, version: "1", nonce: "n1", resources: []proto.Message{edsCluster("a")}})
		time.Sleep(15*time.Second - gatherTime - 1)
		synctest.Wait()
		equal(t, "before", r.counts("cluster.a.init_fetch_timeout", "cluster_manager.cds.init_fetch_timeout"), "init_fetch_timeout=0 init_fetch_timeout=0")
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		equal(t, "after", r.counts("cluster.a.init_fetch_timeout", "cluster_manager.cds.init_fetch_timeout"), "init_fetch_timeout=1 init_fetch_timeout=0")
		select {
		case <-r.m.Ready():
		default:
			t.Error("not ready after the time")
		}
		s.answer(t, answer{kind: endpointKind, version: "e", nonce: "n2", resources: []proto.Message{endpointsOf("a", 1)}})
		equal(t, "hosts", r.hosts("a"), ":1")
		r.stop()
	})
}

// TestFirstAnswerIsWaitedForWithoutLimit: a timeout of 0 is none.
func TestFirstAnswerIsWaitedForWithoutLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, false, func(c *Config) { c.CDS.InitialFetchTimeout = 0 })
		r.start()
		s := r.open()
		time.Sleep(time.Hour)
		synctest.Wait()
		equal(t, "stats", r.counts("cluster_manager.cds.init_fetch_timeout"), "init_fetch_timeout=0")
		select {
		case <-r.m.Ready():
			t.Error("ready without an answer")
		default:
		}
		s.answer(t, answer{kind: clusterKind, version: "1", nonce: "n1"})
		synctest.Wait()
		select {
		case <-r.m.Ready():
		default:
			t.Error("not ready after the answer")
		}
		r.stop()
	})
}

func TestStartGoesOnWithoutControlPlane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, true, nil)
		r.refuse.Store(true)
		r.start()
		time.Sleep(16 * time.Second)
		synctest.Wait()
		equal(t, "stats", r.counts("cluster_manager.cds.init_fetch_timeout"), "init_fetch_timeout=1")
		select {
		case <-r.m.Ready():
		default:
			t.Error("not ready after the time")
		}
		r.stop()
	})
}

func TestNewVersionOfAClusterKeepsItsHosts(t *testing.T) {
	inVariants(t, func(t *testing.T, r *rig, s *fakeStream) {
		s.answer(t, answer{kind: clusterKind, version: "1", nonce: "n1", resources: []proto.Message{edsCluster("a")}})
		s.answer(t, answer{kind: endpointKind, version: "e", nonce: "n2", resources: []proto.Message{endpointsOf("a", 1)}})
		first := r.m.Cluster("a").Current()
		reply := s.answer(t, answer{kind: clusterKind, version: "2", nonce: "n3", resources: []proto.Message{edsCluster("a", timeout(2*time.Second))}})
		want := map[bool]string{false: "Cluster node=node version=2 nonce=n3", true: "Cluster nonce=n3"}[r.delta]
		equal(t, "reply", reply, want)
		if r.m.Cluster("a").Current() == first {
			t.Error("the new version waits though its hosts are known")
		}
		equal(t, "hosts", r.hosts("a"), ":1")
		equal(t, "stats", r.counts("cluster.a.assignment_use_cached", "cluster_manager.cluster_modified", "cluster_manager.warming_clusters"),
			"assignment_use_cached=1 cluster_modified=1 warming_clusters=0")
	})
}

// staleInAMinute starts a client with a cluster whose host becomes stale after a minute, and
// returns the stream of its server and the assignment, which was sent once.
func staleInAMinute(t *testing.T) (*rig, *fakeStream, *endpointv3.ClusterLoadAssignment) {
	t.Helper()
	r := newRig(t, false, nil)
	r.start()
	s := r.open()
	s.answer(t, answer{kind: clusterKind, version: "1", nonce: "n1", resources: []proto.Message{edsCluster("a")}})
	a := endpointsOf("a", 1)
	a.Policy = stale(time.Minute)
	s.answer(t, answer{kind: endpointKind, version: "e1", nonce: "n2", resources: []proto.Message{a}})
	return r, s, a
}

func TestStaleHostsGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, s, a := staleInAMinute(t)
		time.Sleep(50 * time.Second)
		s.answer(t, answer{kind: endpointKind, version: "e2", nonce: "n3", resources: []proto.Message{a}})
		time.Sleep(time.Minute - gatherTime - 1)
		synctest.Wait()
		equal(t, "hosts", r.hosts("a"), ":1")
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		equal(t, "hosts", r.hosts("a"), "")
		equal(t, "stats", r.counts("cluster.a.assignment_timeout_received", "cluster.a.assignment_stale"), "assignment_timeout_received=2 assignment_stale=1")
		s.answer(t, answer{kind: endpointKind, version: "e2", nonce: "n4", resources: []proto.Message{a}})
		equal(t, "hosts", r.hosts("a"), ":1") // the same as before, but no longer in effect
		s.answer(t, answer{kind: endpointKind, version: "e3", nonce: "n5", resources: []proto.Message{endpointsOf("a", 2)}})
		time.Sleep(time.Hour)
		synctest.Wait()
		equal(t, "hosts", r.hosts("a"), ":2")
		r.stop()
	})
}

// TestHostsOfRemovedClustersStay: requests that use a removed cluster find its hosts, also
// after they would have become stale.
func TestHostsOfRemovedClustersStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, s, _ := staleInAMinute(t)
		c := r.m.Cluster("a").Acquire()
		defer c.Release()
		s.answer(t, answer{kind: clusterKind, version: "2", nonce: "n3"})
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if r.m.Cluster("a") != nil || len(c.Sets()[0].Hosts) != 1 || c.Stats().AssignmentStale.Value() != 0 {
			t.Errorf("the removed cluster has %d hosts, stale %d times; want 1 and 0", len(c.Sets()[0].Hosts), c.Stats().AssignmentStale.Value())
		}
		r.stop()
	})
}

func TestPolicyOfAnAssignment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, false, nil)
		r.start()
		s := r.open()
		s.answer(t, answer{kind: clusterKind, version: "1", nonce: "n1", resources: []proto.Message{edsCluster("a")}})
		a := endpointsOf("a", 1, 2, 3)
		a.Policy = &endpointv3.ClusterLoadAssignment_Policy{
			OverprovisioningFactor: wrapperspb.UInt32(200),
			DropOverloads: []*endpointv3.ClusterLoadAssignment_Policy_DropOverload{{
				Category: "load", DropPercentage: &typev3.FractionalPercent{Numerator: 125, Denominator: typev3.FractionalPercent_TEN_THOUSAND},
			}},
		}
		hosts := a.GetEndpoints()[0].GetLbEndpoints()
		hosts[0].HealthStatus, hosts[1].HealthStatus = corev3.HealthStatus_UNHEALTHY, corev3.HealthStatus_DRAINING
		a.NamedEndpoints = map[string]*endpointv3.Endpoint{"third": hosts[2].GetEndpoint()}
		hosts[2].HostIdentifier = &endpointv3.LbEndpoint_EndpointName{EndpointName: "third"}
		s.answer(t, answer{kind: endpointKind, version: "e1", nonce: "n2", resources: []proto.Message{a}})
		c := r.m.Cluster("a").Current()
		set := c.Sets()[0]
		if len(set.Hosts) != 3 || set.Overprovisioning != 200 || c.DropOverload() != 1.25 {
			t.Fatalf("%d hosts, factor %d, %v%% to drop, want 3, 200 and 1.25%%", len(set.Hosts), set.Overprovisioning, c.DropOverload())
		}
		for v := range r.m.Clusters {
			if v.DropOverload != 1.25 {
				t.Errorf("%v%% to drop are shown, want 1.25%%", v.DropOverload)
			}
		}
		equal(t, "flags", set.Hosts[0].Flags().String()+" "+set.Hosts[1].Flags().String()+" "+set.Hosts[2].Flags().String(),
			"/failed_eds_health /eds_status_draining healthy")
		r.stop()
	})
}

func TestVersionsWriteNoLinesOfTheirOwn(t *testing.T) {
	const evil, clean = "1\nserver.live: 0\x1b[2J", "1_server.live: 0_[2J"
	inVariants(t, func(t *testing.T, r *rig, s *fakeStream) {
		s.answer(t, answer{kind: clusterKind, version: evil, nonce: "n1", resources: []proto.Message{edsCluster("a"), edsCluster("b", timeout(-1))}})
		equal(t, "version", r.m.Version(), clean)
		for c := range r.m.Clusters {
			equal(t, "of the cluster", c.Version, clean)
		}
		for f := range r.c.Failures {
			equal(t, "of the refused", f.Version, clean)
		}
		s.answer(t, answer{kind: clusterKind, version: evil, nonce: "n2", resources: []proto.Message{edsCluster("a")}})
		view := r.st.View()
		defer view.Close()
		c, ok := view.Find("cluster_manager.cds.version_text")
		if !ok || c.Text() != clean {
			t.Errorf("version %q in the statistics, want %q", c.Text(), clean)
		}
	})
}

// TestVersionGaugeIsNeverNegative: readers that take the gauge for a signed number show the
// same value as the server.
func TestVersionGaugeIsNeverNegative(t *testing.T) {
	inVariants(t, func(t *testing.T, r *rig, s *fakeStream) {
		high := 0
		for i := range 20 {
			version := fmt.Sprint(i)
			s.answer(t, answer{kind: clusterKind, version: version, nonce: "n", resources: []proto.Message{edsCluster("a")}})
			hash := xxhash.Sum64String(version)
			high += int(hash >> 63)
			equal(t, "version "+version, r.counts("cluster_manager.cds.version"), fmt.Sprint("version=", hash<<1>>1))
		}
		if high == 0 {
			t.Error("no version has a hash with the highest bit")
		}
	})
}

func TestRefusalsHoldOnToNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, false, nil)
		r.start()
		s := r.open()
		s.says()
		bad := edsCluster("bad", func(c *clusterv3.Cluster) { c.ConnectTimeout = durationpb.New(-time.Second) })
		for i := range 5 { // each time with a different good one
			s.answer(t, answer{kind: clusterKind, version: "1", nonce: "n", resources: []proto.Message{bad, edsCluster(fmt.Sprint("good-", i))}})
		}
		equal(t, "stats", r.counts("xds.resources"), "resources=1")
		r.c.ads.mu.Lock()
		for _, topic := range r.c.ads.topics {
			if topic.kind == clusterKind && len(topic.entries) != 1 {
				t.Errorf("%d clusters are remembered though the last answer had one good one", len(topic.entries))
			}
		}
		r.c.ads.mu.Unlock()

		data := (&answer{kind: clusterKind, version: "2", resources: []proto.Message{bad}}).encode(t, false)
		u, err := decodeResponse(data, false)
		if err != nil {
			t.Fatal(err)
		}
		if _, faults := r.c.clusters.apply(&u.update); len(faults) != 1 {
			t.Fatalf("faults %v", faults)
		}
		want := bytes.Clone(u.resources[0].Bytes())
		clear(data) // as if the buffer was reused
		for f := range r.c.Failures {
			if !bytes.Equal(f.Config.GetValue(), want) {
				t.Error("what is kept of a refused cluster is a part of the response")
			}
		}
		r.stop()
	})
}

// TestResourcesAreLimited lets a control plane send more clusters, and larger load
// assignments, than the client keeps.
func TestResourcesAreLimited(t *testing.T) {
	for _, v := range variants {
		t.Run(v.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, v.delta, func(c *Config) { c.MaxResources, c.MaxResourceBytes = 3, 2000 })
				r.start()
				s := r.open()
				reply := s.answer(t, answer{kind: clusterKind, version: "1", nonce: "n1", resources: []proto.Message{
					edsCluster("a"), edsCluster("b"), edsCluster("c"), edsCluster("d"),
				}})
				if want := `xds: resource \"d\" exceeds the limit of 3 resources`; !strings.Contains(reply, want) {
					t.Errorf("four clusters: %s, want %s", reply, want)
				}
				equal(t, "stats", r.counts("xds.resources", "xds.resource_overflow", "cluster_manager.cluster_added"), "resources=3 resource_overflow=1 cluster_added=3")

				less := answer{kind: clusterKind, version: "2", nonce: "n2", resources: []proto.Message{edsCluster("a")}}
				if v.delta {
					less.resources, less.removed = nil, []string{"b", "c"}
				}
				s.answer(t, less)
				s.answer(t, answer{kind: endpointKind, version: "e1", nonce: "n3", resources: []proto.Message{endpointsOf("a", 1)}})
				equal(t, "stats", r.counts("xds.resources", "xds.resource_overflow"), "resources=2 resource_overflow=1")
				ports := make([]uint32, 500)
				for i := range ports {
					ports[i] = uint32(i + 1)
				}
				reply = s.answer(t, answer{kind: endpointKind, version: "e2", nonce: "n4", resources: []proto.Message{endpointsOf("a", ports...)}})
				if want := `xds: resource \"a\" exceeds the limit of 2000 bytes of all resources`; !strings.Contains(reply, want) {
					t.Errorf("500 hosts: %s, want %s", reply, want)
				}
				equal(t, "hosts", r.hosts("a"), ":1")
				equal(t, "stats", r.counts("xds.resources", "xds.resource_overflow", "cluster.a.update_rejected"), "resources=2 resource_overflow=2 update_rejected=1")

				none := answer{kind: clusterKind, version: "3", nonce: "n5"}
				if v.delta {
					none.removed = []string{"a"}
				}
				s.answer(t, none)
				time.Sleep(time.Second)
				s.answer(t, answer{kind: clusterKind, version: "4", nonce: "n6", resources: []proto.Message{edsCluster("e")}})
				time.Sleep(time.Second)
				equal(t, "stats", r.counts("xds.resources"), "resources=1")
				r.stop()
			})
		})
	}
}

// TestTooLargeAssignmentStopsNoOther: an assignment behind a larger one than the limit
// of bytes, in the same response, is applied.
func TestTooLargeAssignmentStopsNoOther(t *testing.T) {
	for _, v := range variants {
		t.Run(v.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, v.delta, func(c *Config) { c.MaxResourceBytes = 2000 })
				r.start()
				s := r.open()
				s.answer(t, answer{kind: clusterKind, version: "1", nonce: "n1", resources: []proto.Message{edsCluster("a"), edsCluster("b")}})
				s.answer(t, answer{kind: endpointKind, version: "1", nonce: "n2", resources: []proto.Message{endpointsOf("a", make([]uint32, 500)...), endpointsOf("b", 1)}})
				equal(t, "hosts", r.hosts("b"), ":1")
				equal(t, "stats", r.counts("cluster.a.update_rejected", "cluster.b.update_success"), "update_rejected=1 update_success=1")
				r.stop()
			})
		})
	}
}

// TestFailuresAreInTheOrderOfNames: and whoever has seen enough is shown no more.
func TestFailuresAreInTheOrderOfNames(t *testing.T) {
	inVariants(t, func(t *testing.T, r *rig, s *fakeStream) {
		want := []string{"a", "b", "c", "d"}
		a := answer{kind: clusterKind, version: "1", nonce: "n1"}
		for _, name := range []string{"c", "a", "d", "b"} {
			a.resources = append(a.resources, edsCluster(name, timeout(-time.Second)))
		}
		s.answer(t, a)
		for most := range want {
			var got []string
			for f := range r.c.Failures {
				if got = append(got, f.Name); len(got) > most {
					break
				}
			}
			if !slices.Equal(got, want[:most+1]) {
				t.Errorf("got %q, want %q", got, want[:most+1])
			}
		}
	})
}

// TestSameClusterIsNotReadAgain: its error is logged once.
func TestSameClusterIsNotReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := new(onDisk)
		r := newRig(t, false, func(c *Config) { c.Logger = slog.New(slog.NewTextHandler(d, nil)) })
		r.start()
		s := r.open()
		s.says()
		for i, seconds := range []time.Duration{time.Second, time.Second, time.Minute, time.Minute} {
			s.answer(t, answer{kind: clusterKind, version: fmt.Sprint(i), nonce: "n", resources: []proto.Message{
				edsCluster(strings.Repeat("n", 61), timeout(seconds)),
			}})
			d.mu.Lock()
			if n, want := strings.Count(d.log.String(), "level=WARN"), i/2+1; n != want {
				t.Errorf("%d warnings after update %d, want %d:\n%s", n, i+1, want, &d.log)
			}
			d.mu.Unlock()
		}
		r.stop()
	})
}

// TestFailuresOfMissingClusters: the failure of a cluster that a response lacks is kept,
// unless the response is complete.
func TestFailuresOfMissingClusters(t *testing.T) {
	inVariants(t, func(t *testing.T, r *rig, s *fakeStream) {
		bad := edsCluster("bad", func(c *clusterv3.Cluster) { c.ConnectTimeout = durationpb.New(-time.Second) })
		failures := func() (names string) {
			for f := range r.c.Failures {
				names += f.Name + " "
			}
			return names
		}
		s.answer(t, answer{kind: clusterKind, version: "1", nonce: "n1", resources: []proto.Message{bad}})
		equal(t, "failures", failures(), "bad ")
		s.answer(t, answer{kind: clusterKind, version: "2", nonce: "n2", resources: []proto.Message{edsCluster("good")}})
		equal(t, "failures", failures(), map[bool]string{true: "bad ", false: ""}[r.delta])
	})
}

// TestFailuresAreLimited refuses 20 clusters of a megabyte, some of them again, and
// forgets half of them.
func TestFailuresAreLimited(t *testing.T) {
	s := &clusters{failures: make(map[string]*Failure)}
	c := &Client{clusters: s}
	check := func(want, most int) {
		t.Helper()
		n, whole := 0, 0
		for f := range c.Failures {
			n++
			if f.Config != nil {
				whole++
			}
		}
		if n != want || whole != most {
			t.Errorf("%d failures, %d with the cluster, want %d and %d", n, whole, want, most)
		}
	}
	value := make([]byte, 1<<20)
	refuse := func(from, to int) {
		for i := from; i < to; i++ {
			r := decode.WireResource(endpointKind.typeURL(), value, 0)
			r.Name = fmt.Sprint(i)
			s.note(&r, errPanic)
		}
	}
	refuse(0, 20)
	check(20, 15)
	refuse(5, 10)
	check(20, 15)
	s.keepFailures(map[string]bool{"15": true, "0": true, "1": true})
	check(3, 2)
	refuse(15, 30)
	check(17, 15)
	for i := range 30 {
		s.forget(fmt.Sprint(i))
	}
	if check(0, 0); s.failedBytes != 0 {
		t.Errorf("%d bytes of no failures", s.failedBytes)
	}
	long := decode.WireResource("", nil, 0)
	long.Name = "long"
	s.note(&long, errors.New(strings.Repeat("e", maxFailedBytes)))
	check(0, 0)
}

// TestLongNamesAreRefused: in envelopes and in messages.
func TestLongNamesAreRefused(t *testing.T) {
	for _, name := range []string{strings.Repeat("n", maxLabel), strings.Repeat("n", maxLabel+1)} {
		for _, v := range variants {
			data := (&answer{kind: clusterKind, resources: []proto.Message{edsCluster(name)}}).encode(t, v.delta)
			if v.delta { // the name of the envelope is limited, too
				data = (&answer{kind: clusterKind, heartbeats: []string{name}}).encode(t, true)
			}
			if _, err := decodeResponse(data, v.delta); (err != nil) != (len(name) > maxLabel) {
				t.Errorf("%s: a name of %d bytes: %v", v.name, len(name), err)
			}
		}
	}
}

// TestVersionsCount: the versions of resources belong to the size of all resources.
func TestVersionsCount(t *testing.T) {
	for _, v := range variants {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, v.delta, func(c *Config) { c.MaxResourceBytes = 2000 })
			r.start()
			s := r.open()
			long := strings.Repeat("v", 2000)
			for i, version := range []string{"1", long, "2"} {
				nonce := fmt.Sprint("n", i)
				for _, a := range []answer{
					{kind: clusterKind, resources: []proto.Message{edsCluster("a")}},
					{kind: endpointKind, resources: []proto.Message{endpointsOf("a", 1)}},
				} {
					a.version, a.nonce = version, nonce
					time.Sleep(time.Minute) // refusals in a row are spaced
					reply := s.answer(t, a)
					if strings.Contains(reply, "exceeds the limit of 2000 bytes") != (version == long) {
						t.Errorf("%s: a version of %d bytes: %s", v.name, len(version), reply)
					}
				}
			}
			equal(t, "stats", r.counts("xds.resources", "xds.resource_overflow"), "resources=2 resource_overflow=2")
			r.stop()
		})
	}
}
