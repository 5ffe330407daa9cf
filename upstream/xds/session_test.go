package xds

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/statsd-admin/statsd-admin/upstream/config"
)

// TestServerThatDoesNotRead: a server that reads no requests until its responses are
// taken gets its way. Of its replies, a bounded number wait, the last one among them.
func TestServerThatDoesNotRead(t *testing.T) {
	for _, v := range variants {
		t.Run(v.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, v.delta, func(c *Config) {
					c.CDS = nil
					withLayer(c)
				})
				opened := r.c.open
				r.c.open = func(ctx context.Context, a *config.APISource, delta bool, method string) (stream, error) {
					s, err := opened(ctx, a, delta, method)
					s.(*fakeStream).requests = make(chan proto.Message) // without room
					return s, err
				}
				r.start()
				s := r.open()
				for i := range 5 * unsent {
					a := answer{kind: layerKind, version: fmt.Sprint(i), nonce: fmt.Sprint("n", i), resources: flags(t, fmt.Sprint("key", i))}
					select {
					case s.responses <- a.encode(t, v.delta):
					case <-time.After(time.Minute):
						t.Fatalf("response %d is not taken", i)
					}
				}
				synctest.Wait()
				if values, _ := r.layers.Load("flags"); fmt.Sprint(values) != fmt.Sprintf("map[key%d:1]", 5*unsent-1) {
					t.Errorf("the layer is %v", values)
				}
				var requests []string
				for waiting := true; waiting; {
					synctest.Wait()
					select {
					case q := <-s.requests:
						requests = append(requests, describe(q))
					default:
						waiting = false
					}
				}
				// One is being sent, and the newest is built once there is room.
				if n := len(requests); n != 1+unsent+1 || !strings.HasSuffix(requests[n-1], fmt.Sprint("nonce=n", 5*unsent-1)) {
					t.Errorf("requests %q", requests)
				}
				r.stop()
			})
		})
	}
}
