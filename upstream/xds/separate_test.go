package xds

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	runtimev3 "github.com/envoyproxy/go-control-plane/envoy/service/runtime/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/upstream"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/config/decode"
)

// ownStream returns a cluster with its own stream for hosts.
func ownStream(delta bool) func(*clusterv3.Cluster) {
	t := corev3.ApiConfigSource_GRPC
	if delta {
		t = corev3.ApiConfigSource_DELTA_GRPC
	}
	return func(c *clusterv3.Cluster) {
		c.EdsClusterConfig.EdsConfig = &corev3.ConfigSource{ConfigSourceSpecifier: &corev3.ConfigSource_ApiConfigSource{ApiConfigSource: &corev3.ApiConfigSource{
			ApiType: t, TransportApiVersion: corev3.ApiVersion_V3,
			GrpcServices: []*corev3.GrpcService{{TargetSpecifier: &corev3.GrpcService_EnvoyGrpc_{EnvoyGrpc: &corev3.GrpcService_EnvoyGrpc{ClusterName: "control"}}}},
		}}}
	}
}

func apiSource(delta bool) *config.ConfigSource {
	s := &config.ConfigSource{Kind: config.SourceAPI, API: &config.APISource{Type: config.APIGRPC, GRPC: []config.GRPCService{{ClusterName: "control"}}}}
	if delta {
		s.API.Type = config.APIDeltaGRPC
	}
	return s
}

func TestSeparateStreams(t *testing.T) {
	methods := map[bool][2]string{
		false: {"/envoy.service.cluster.v3.ClusterDiscoveryService/StreamClusters", "/envoy.service.endpoint.v3.EndpointDiscoveryService/StreamEndpoints"},
		true:  {"/envoy.service.cluster.v3.ClusterDiscoveryService/DeltaClusters", "/envoy.service.endpoint.v3.EndpointDiscoveryService/DeltaEndpoints"},
	}
	replies := map[bool]string{
		false: `ClusterLoadAssignment node=node names=a nonce=n2 error="xds: resource \"other\" was not requested"`,
		true:  `ClusterLoadAssignment nonce=n2 error="xds: resource \"other\" was not requested"`,
	}
	for _, v := range variants {
		t.Run(v.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, v.delta, func(c *Config) { c.ADS, c.CDS = nil, apiSource(v.delta) })
				r.start()
				s := r.open()
				equal(t, "method", s.method, methods[v.delta][0])
				s.answer(t, answer{kind: clusterKind, version: "1", nonce: "n1", resources: []proto.Message{edsCluster("a", ownStream(v.delta))}})
				e := r.open()
				equal(t, "method", e.method, methods[v.delta][1])
				e.says()
				equal(t, "reply", e.answer(t, answer{kind: endpointKind, version: "x", nonce: "n2", resources: []proto.Message{endpointsOf("other", 1)}}), replies[v.delta])
				equal(t, "stats", r.counts("cluster.a.update_rejected", "cluster.a.update_success"), "update_rejected=1 update_success=0")
				e.answer(t, answer{kind: endpointKind, version: "y", nonce: "n3", resources: []proto.Message{endpointsOf("a", 1)}})
				equal(t, "hosts", r.hosts("a"), ":1")
				equal(t, "stats", r.counts("cluster_manager.cds.control_plane.connected_state", "cluster.a.control_plane.connected_state", "control_plane.connected_state"),
					"connected_state=1 connected_state=1 connected_state=none")

				e.answer(t, answer{kind: clusterKind, version: "z", nonce: "n4"}) // not the kind of the stream
				if e.ctx.Err() == nil {
					t.Error("the stream is still open after a response of another type")
				}
				equal(t, "hosts", r.hosts("a"), ":1")
				r.stop()
				if s.ctx.Err() == nil {
					t.Error("the stream is still open after the end")
				}
			})
		})
	}
}

func TestMissingAssignments(t *testing.T) {
	inVariants(t, func(t *testing.T, r *rig, s *fakeStream) {
		s.answer(t, answer{kind: clusterKind, version: "1", nonce: "n1", resources: []proto.Message{edsCluster("a")}})
		s.answer(t, answer{kind: endpointKind, version: "1", nonce: "n2", removed: []string{"a"}})
		equal(t, "hosts", r.hosts("a"), "")
		equal(t, "stats", r.counts("cluster.a.update_empty", "cluster.a.update_success"), "update_empty=1 update_success=1")
		s.answer(t, answer{kind: endpointKind, version: "2", nonce: "n3", resources: []proto.Message{endpointsOf("a", 1)}})
		s.answer(t, answer{kind: endpointKind, version: "3", nonce: "n4", removed: []string{"a"}})
		equal(t, "hosts", r.hosts("a"), ":1") // they stay
	})
}

func TestClusterThatCannotBeReadRemovesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, false, nil)
		r.start()
		s := r.open()
		s.answer(t, answer{kind: clusterKind, version: "1", nonce: "n1", resources: []proto.Message{edsCluster("a"), edsCluster("b")}})
		reply := s.answer(t, answer{kind: clusterKind, version: "2", nonce: "n2", resources: []proto.Message{edsCluster("a")},
			raw: []*anypb.Any{{TypeUrl: clusterKind.typeURL(), Value: []byte{0xff}}, {TypeUrl: "x/y", Value: nil}}})
		if !strings.Contains(reply, `error="cluster #0: the bytes are not a envoy.config.cluster.v3.Cluster\ncluster #1: type URL \"x/y\" is not `) {
			t.Errorf("reply %s", reply)
		}
		if r.m.Cluster("b") == nil {
			t.Error("the cluster is gone that the unreadable one may have been")
		}
		s.answer(t, answer{kind: clusterKind, version: "3", nonce: "n3", resources: []proto.Message{edsCluster("a")}})
		if r.m.Cluster("b") != nil {
			t.Error("the cluster is still there")
		}
		r.stop()
	})
}

func TestBadAssignmentKeepsHosts(t *testing.T) {
	inVariants(t, func(t *testing.T, r *rig, s *fakeStream) {
		s.answer(t, answer{kind: clusterKind, version: "1", nonce: "n1", resources: []proto.Message{edsCluster("a"), edsCluster("b")}})
		s.answer(t, answer{kind: endpointKind, version: "1", nonce: "n2", resources: []proto.Message{endpointsOf("a", 1), endpointsOf("b", 1)}})
		reply := s.answer(t, answer{kind: endpointKind, version: "2", nonce: "n3", resources: []proto.Message{endpointsOf("a", 70000), endpointsOf("b", 2)}})
		if !strings.Contains(reply, `error="load assignment \"a\": endpoints[0].lb_endpoints[0].endpoint.address.socket_address.port_value: 70000 exceeds 65535"`) {
			t.Errorf("reply %s", reply)
		}
		equal(t, "hosts", r.hosts("a")+" "+r.hosts("b"), ":1 :2")
		equal(t, "stats", r.counts("cluster.a.update_rejected", "cluster.b.update_rejected"), "update_rejected=1 update_rejected=0")
		// A new subscriber gets the last good version.
		s.answer(t, answer{kind: clusterKind, version: "2", nonce: "n4", resources: []proto.Message{edsCluster("a", timeout(3*time.Second)), edsCluster("b")}})
		equal(t, "hosts", r.hosts("a"), ":1")
	})
}

func TestRequestsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, false, func(c *Config) { c.ADS.RateLimit = &config.RateLimit{MaxTokens: 2, FillRate: 0.5} })
		r.start()
		s := r.open()
		equal(t, "first", s.says(), "Cluster node=node")
		s.answer(t, answer{kind: clusterKind, version: "1", nonce: "n1", resources: []proto.Message{edsCluster("a")}})
		equal(t, "stats", r.counts("control_plane.rate_limit_enforced", "control_plane.pending_requests"), "rate_limit_enforced=1 pending_requests=1")
		time.Sleep(1900 * time.Millisecond)
		equal(t, "too early", s.says(), "")
		time.Sleep(200 * time.Millisecond)
		equal(t, "later", s.says(), "ClusterLoadAssignment node=node names=a")
		equal(t, "stats", r.counts("control_plane.rate_limit_enforced", "control_plane.pending_requests"), "rate_limit_enforced=1 pending_requests=0")
		r.stop()
	})
}

func TestRefusalsInARowAreSpaced(t *testing.T) {
	inVariants(t, func(t *testing.T, r *rig, s *fakeStream) {
		s.says()
		bad := answer{kind: clusterKind, version: "1", nonce: "n1", resources: []proto.Message{edsCluster("a", timeout(-1))}}
		if s.answer(t, bad) == "" {
			t.Error("the first refusal is not sent at once")
		}
		equal(t, "second", s.answer(t, bad), "")
		time.Sleep(firstDelay) // the largest random part of it
		if s.says() == "" {
			t.Error("the second refusal is never sent")
		}
		equal(t, "third", s.answer(t, bad), "")
		good := answer{kind: clusterKind, version: "2", nonce: "n2", resources: []proto.Message{edsCluster("a")}}
		if reply := s.answer(t, good); !strings.Contains(reply, "nonce=n2\n") || strings.Contains(reply, "error") != r.delta {
			t.Errorf("reply %s, want that the good one is accepted at once", reply)
		}
	})
}

// TestDelaysOfRefusalsBeginAgain: after an accepted response, the second refusal waits as
// long as at first, however long the delays were before.
func TestDelaysOfRefusalsBeginAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, false, func(c *Config) { c.Rand = func() uint64 { return uint64(firstDelay)<<20 - 1 } }) // the longest delays
		r.start()
		s := r.open()
		s.says()
		bad := answer{kind: clusterKind, version: "1", nonce: "n1", resources: []proto.Message{edsCluster("a", timeout(-1))}}
		for range 4 {
			s.answer(t, bad)
			time.Sleep(time.Hour)
		}
		s.says()
		s.answer(t, answer{kind: clusterKind, version: "2", nonce: "n2", resources: []proto.Message{edsCluster("a")}})
		if s.answer(t, bad) == "" {
			t.Error("the first refusal is not sent at once")
		}
		equal(t, "second", s.answer(t, bad), "")
		time.Sleep(firstDelay)
		if s.says() == "" {
			t.Errorf("the second refusal is not sent after %v", firstDelay)
		}
		r.stop()
	})
}

// TestRefusalsAreNotLost: in the delta variant, where each response has its reply, the last
// refusal is sent although responses were accepted before its turn came.
func TestRefusalsAreNotLost(t *testing.T) {
	for _, tt := range []struct {
		responses, want string // with a ! for a refused response
		delta           bool
	}{
		{"n1", "n1", true},
		{"n1!", "n1!", true},
		{"n1! n2", "n1! n2", true},
		{"n1! n2 n3", "n1! n3", true},
		{"n1! n2! n3", "n2! n3", true},
		{"n1! n2 n3!", "n1! n3!", true},
		{"n1! n2 n3! n4! n5", "n4! n5", true},
		{"n1 n2! n3", "n2! n3", true},
		{"n1! n2", "n2", false},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, tt.delta, func(c *Config) { c.ADS.RateLimit = &config.RateLimit{MaxTokens: 1, FillRate: 1} })
			r.start()
			s := r.open()
			s.says()
			for nonce := range strings.FieldsSeq(tt.responses) {
				a := answer{kind: clusterKind, version: "1", nonce: strings.TrimSuffix(nonce, "!")}
				if a.nonce != nonce {
					a.resources = []proto.Message{edsCluster("a", timeout(-1))}
				}
				equal(t, "at once", s.answer(t, a), "")
			}
			time.Sleep(10 * time.Second)
			var got []string
			for line := range strings.Lines(s.says()) {
				_, nonce, _ := strings.Cut(line, "nonce=")
				if nonce, _, refused := strings.Cut(strings.TrimSpace(nonce), " error="); refused {
					got = append(got, nonce+"!")
				} else {
					got = append(got, nonce)
				}
			}
			equal(t, tt.responses, strings.Join(got, " "), tt.want)
			r.stop()
		})
	}
}

func TestNodeOnFirstMessageOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, false, func(c *Config) { c.ADS.SetNodeOnFirstMessageOnly = true })
		r.start()
		s := r.open()
		q := <-s.requests
		equal(t, "first", describe(q), "Cluster node=node")
		n := q.(interface{ GetNode() *corev3.Node }).GetNode()
		if n.GetCluster() != "edge" || n.GetUserAgentName() != "proxy" || n.GetUserAgentVersion() != "1.2.3" || n.GetMetadata().AsMap()["role"] != "test" {
			t.Errorf("node %v", n)
		}
		equal(t, "reply", s.answer(t, answer{kind: clusterKind, version: "1", nonce: "n1"}), "Cluster version=1 nonce=n1")
		r.stop()
	})
}

func TestRuntimeLayers(t *testing.T) {
	for _, v := range variants {
		t.Run(v.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, v.delta, func(c *Config) {
					c.CDS = nil
					c.Layers = []Layer{{Name: "flags", Source: config.ConfigSource{Kind: config.SourceADS, InitialFetchTimeout: time.Second}}}
				})
				r.start()
				s := r.open()
				s.says()
				layer := func(values map[string]any) []proto.Message {
					l, err := structpb.NewStruct(values)
					if err != nil {
						t.Fatal(err)
					}
					return []proto.Message{&runtimev3.Runtime{Name: "flags", Layer: l}}
				}
				select {
				case <-r.c.LayersReady():
					t.Error("ready before the first answer")
				default:
				}
				began := time.Now().UnixMilli()
				s.answer(t, answer{kind: layerKind, version: "1", nonce: "n1", resources: layer(map[string]any{"a": 1.0})})
				<-r.c.LayersReady()
				var at int64
				if _, err := fmt.Sscanf(r.counts("runtime.flags.update_time"), "update_time=%d", &at); err != nil || at < began || at > time.Now().UnixMilli() {
					t.Errorf("time of the update: %d, %v, want one between %d and now", at, err, began)
				}
				if reply := s.answer(t, answer{kind: layerKind, version: "2", nonce: "n2", resources: layer(map[string]any{"bad": 1.0})}); !strings.Contains(reply, `error="xds: runtime layer \"flags\": bad values"`) {
					t.Errorf("reply %s", reply)
				}
				got, _ := r.layers.Load("flags")
				if got.(map[string]any)["a"] != 1.0 {
					t.Errorf("values %v", got)
				}
				equal(t, "stats", r.counts("runtime.flags.update_success", "runtime.flags.update_rejected"), "update_success=1 update_rejected=1")
				r.stop()
			})
		})
	}
}

func TestSourcesThatCannotWork(t *testing.T) {
	d, st := decode.NewDecoder(decode.Options{}), store.New(store.Options{})
	grpc := []config.GRPCService{{ClusterName: "control"}}
	tests := []struct {
		name string
		c    Config
		want string
	}{
		{"no-ads", Config{CDS: &config.ConfigSource{Kind: config.SourceADS}}, "xds: cds_config: needs the aggregated stream, but there is no ads_config"},
		{"rest", Config{CDS: &config.ConfigSource{Kind: config.SourceAPI, API: &config.APISource{Type: config.APIREST, GRPC: grpc}}},
			"xds: cds_config: api_config_source: api_type is not one of GRPC and DELTA_GRPC"},
		{"no-target", Config{ADS: &config.APISource{Type: config.APIGRPC, GRPC: make([]config.GRPCService, 1)}},
			"xds: ads_config: grpc_services: neither a cluster name nor a target URI"},
		{"two-targets", Config{ADS: &config.APISource{Type: config.APIGRPC, GRPC: append(grpc, grpc...)}},
			"xds: ads_config: grpc_services: 2 services, exactly one is supported"},
		{"credentials", Config{ADS: &config.APISource{Type: config.APIGRPC, GRPC: []config.GRPCService{{TargetURI: "h:1", Credentials: true}}}},
			"xds: ads_config: grpc_services[0].google_grpc: credentials are not supported, use envoy_grpc and a cluster with a transport socket"},
		{"unset", Config{Layers: []Layer{{Name: "l"}}}, `xds: runtime layer "l": no source given, one of path, path_config_source, api_config_source and ads is needed`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.c.Store, tt.c.Decoder = st, d
			_, err := New(tt.c)
			if err == nil {
				t.Fatal("accepted")
			}
			equal(t, "error", err.Error(), tt.want)
		})
	}
	c, err := New(Config{Store: st, Decoder: d})
	if err != nil {
		t.Fatal(err)
	}
	if s, err := c.Source(&config.Cluster{Name: "b", Type: config.StrictDNS}); s != nil || err == nil || err.Error() != `xds: cluster "b" is not of type EDS` {
		t.Errorf("a source of another type: %v, %v", s, err)
	}
	m := upstream.New(upstream.Config{Store: st, Source: c.Source})
	defer m.Close()
	p, err := d.ClusterMessage(edsCluster("a"), 0)
	if err != nil {
		t.Fatal(err)
	}
	err = m.AddStatic(p)
	const want = `upstream: cluster "a": eds_cluster_config.eds_config: needs the aggregated stream, but there is no ads_config`
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// TestManyRefusedClustersAreLoggedOnce sends a small response with many invalid
// resources.
func TestManyRefusedClustersAreLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := new(onDisk)
		r := newRig(t, false, func(c *Config) { c.Logger = slog.New(slog.NewTextHandler(d, nil)) })
		r.start()
		s := r.open()
		s.says()
		a := answer{kind: clusterKind, version: "1", nonce: "n1"}
		for range 1000 {
			a.raw = append(a.raw, &anypb.Any{TypeUrl: clusterKind.typeURL()})
		}
		if reply := s.answer(t, a); !strings.Contains(reply, "error=") {
			t.Errorf("reply %s", reply)
		}
		r.stop()
		if n := strings.Count(d.log.String(), "cluster refused"); n != maxLogged {
			t.Errorf("%d lines about one cluster each, want %d", n, maxLogged)
		}
		if !strings.Contains(d.log.String(), `msg="further clusters refused" clusters=900`) {
			t.Error("the others are not counted")
		}
	})
}
