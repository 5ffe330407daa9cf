//go:build !race

package xds

import (
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"

	"google.golang.org/protobuf/proto"
)

// TestAmplification lets a control plane send the resources that keep most for their
// size, and withdraw them.
func TestAmplification(t *testing.T) {
	ports := make([]uint32, 5000)
	for i := range ports {
		ports[i] = uint32(i + 1)
	}
	var small []proto.Message
	for i := range 1000 {
		small = append(small, edsCluster(fmt.Sprintf("c%d", i)))
	}
	for name, tt := range map[string]struct {
		clusters []proto.Message
		hosts    []uint32 // of cluster a
		most     int      // bytes kept per byte sent
	}{
		"clusters": {small, nil, 400},
		"hosts":    {[]proto.Message{edsCluster("a")}, ports, 60},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, false, nil)
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
				answers := func(of kind, resources ...proto.Message) {
					version++
					a := answer{kind: of, version: fmt.Sprint(version), nonce: fmt.Sprint("n", version), resources: resources}
					sent += len(a.encode(t, false))
					s.answer(t, a)
				}
				answers(clusterKind, edsCluster("warm"))
				answers(clusterKind)
				before := heap()
				sent = 0
				answers(clusterKind, tt.clusters...)
				if tt.hosts != nil {
					answers(endpointKind, endpointsOf("a", tt.hosts...))
				}
				kept := heap() - before
				all := sent
				answers(clusterKind)
				left := heap() - before
				t.Logf("%s: %d KiB kept of %d KiB sent, %d bytes per byte; %d KiB after the end", name, kept>>10, all>>10, kept/all, left>>10)
				if kept > tt.most*all {
					t.Errorf("%d bytes are kept of %d sent, at most %d per byte are allowed", kept, all, tt.most)
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
