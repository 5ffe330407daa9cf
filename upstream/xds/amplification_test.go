//go:build !race

package xds

import (
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"

	"google.golang.org/protobuf/proto"

	meter "github.com/statsd-admin/statsd-admin/bench/budget"
)

// step is a response of a control plane: resources of a kind.
type step struct {
	of        kind
	resources []proto.Message
}

// delivery is a sequence of responses that costs much for its size.
type delivery struct {
	name        string
	delta       bool
	ready, send []step // responses before it, and its own
	most        int    // bytes kept per byte sent
}

// deliveries returns the deliveries. Known resources, which cost least, come first.
func deliveries() []delivery {
	ports := make([]uint32, 5000)
	for i := range ports {
		ports[i] = uint32(i + 1)
	}
	var small []proto.Message
	var single, hosts []step
	for i := range 1000 {
		c := edsCluster(fmt.Sprintf("c%d", i))
		small = append(small, c)
		single = append(single, step{clusterKind, []proto.Message{c}})
		hosts = append(hosts, step{endpointKind, []proto.Message{endpointsOf(fmt.Sprintf("c%d", i), 1)}})
	}
	all := step{clusterKind, small}
	return []delivery{
		{name: "known", ready: []step{all}, send: []step{all}, most: 10},
		{name: "clusters", send: []step{all}, most: 400},
		{name: "hosts", ready: []step{{clusterKind, []proto.Message{edsCluster("a")}}},
			send: []step{{endpointKind, []proto.Message{endpointsOf("a", ports...)}}}, most: 60},
		{name: "single-clusters", delta: true, send: single, most: 400},
		{name: "single-hosts", delta: true, ready: []step{all}, send: hosts, most: 60},
		{name: "empty-responses", delta: true, ready: []step{all}, send: make([]step, 1000), most: 10},
	}
}

// TestAmplification lets a control plane send the deliveries and withdraw them.
func TestAmplification(t *testing.T) {
	for _, tt := range deliveries() {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, tt.delta, nil)
				r.start()
				s := r.open()
				heap := func() int {
					var m runtime.MemStats
					runtime.GC()
					runtime.GC()
					runtime.ReadMemStats(&m)
					return int(m.HeapAlloc)
				}
				sent, version := 0, 0
				answers := func(steps ...step) {
					for _, st := range steps {
						version++
						a := answer{kind: st.of, version: fmt.Sprint(version), nonce: fmt.Sprint("n", version), resources: st.resources}
						sent += len(a.encode(t, tt.delta))
						s.answer(t, a)
					}
				}
				withdraw := func() {
					a := answer{kind: clusterKind, version: "none", nonce: "none", removed: []string{"warm", "a"}}
					for i := range 1000 {
						a.removed = append(a.removed, fmt.Sprint("c", i))
					}
					s.answer(t, a)
				}
				answers(step{clusterKind, []proto.Message{edsCluster("warm")}})
				withdraw()
				answers(tt.ready...)
				before := heap()
				sent = 0
				answers(tt.send...)
				kept := heap() - before
				withdraw()
				left := heap() - before
				t.Logf("%s: %d KiB kept of %d KiB sent, %d bytes per byte; %d KiB after the end", tt.name, kept>>10, sent>>10, kept/sent, left>>10)
				if kept > max(tt.most*sent, 1<<20) {
					t.Errorf("%d bytes are kept of %d sent, at most %d per byte are allowed", kept, sent, tt.most)
				}
				if left > kept/5+1<<20 {
					t.Errorf("%d bytes stay when the resources are withdrawn", left)
				}
				runtime.KeepAlive(r)
				r.stop()
			})
		})
	}
}

// BenchmarkAmplification measures the processor time that the deliveries take for each
// byte sent, until they are acknowledged.
func BenchmarkAmplification(b *testing.B) {
	for _, tt := range deliveries() {
		b.Run("input="+tt.name, func(b *testing.B) {
			m := meter.StartMeter(b)
			sent := 0
			for range b.N {
				m.Stop()
				r := newRig(b, tt.delta, nil)
				r.m.Start()
				s, version := <-r.streams, 0
				encode := func(steps []step) (all [][]byte) {
					for _, st := range steps {
						version++
						a := answer{kind: st.of, version: fmt.Sprint(version), nonce: fmt.Sprint("n", version), resources: st.resources}
						all = append(all, a.encode(b, tt.delta))
					}
					return all
				}
				ready, send := encode(tt.ready), encode(tt.send)
				deliver := func(all [][]byte, last int) {
					sent = 0
					for i, p := range all {
						sent += len(p)
						s.responses <- p
						nonce := fmt.Sprint("n", last-len(all)+i+1)
						s.await(func(q request) bool { return q.GetResponseNonce() == nonce })
					}
				}
				if len(ready) > 0 {
					deliver(ready, len(ready))
					s.await(func(q request) bool { return q.GetTypeUrl() == endpointKind.typeURL() })
				}
				runtime.GC()
				m.Start()
				deliver(send, version)
				m.Stop()
				r.stop()
			}
			m.Report("cpu-ns/B", sent)
		})
	}
}

// request is a request in either variant.
type request interface {
	GetTypeUrl() string
	GetResponseNonce() string
}

// await waits for a request.
func (s *fakeStream) await(is func(request) bool) {
	for q := range s.requests {
		if is(q.(request)) {
			return
		}
	}
}
