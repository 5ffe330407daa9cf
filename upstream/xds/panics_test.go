package xds

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	runtimev3 "github.com/envoyproxy/go-control-plane/envoy/service/runtime/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/statsd-admin/statsd-admin/upstream/config"
)

// wildStream panics when something is to be read from it.
type wildStream struct{ stream }

func (wildStream) Recv() (*response, error) { panic("boom") }

// TestSec_24_UpdatesPanic: an update that makes somebody panic is refused, a stream
// that does is opened anew, and what follows is as always.
func TestSec_24_UpdatesPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var told []string
		r := newRig(t, false, func(c *Config) {
			c.CDS = nil
			c.Layers = []Layer{{Name: "flags", Source: config.ConfigSource{Kind: config.SourceADS}}}
			set := c.SetLayer
			c.SetLayer = func(name string, values map[string]any) error {
				if values["wild"] != nil {
					panic("bang")
				}
				return set(name, values)
			}
			c.Recovered = func(where string, v any) {
				mu.Lock()
				defer mu.Unlock()
				told = append(told, fmt.Sprint(where, ": ", v))
			}
		})
		opened, first := r.c.open, true
		r.c.open = func(ctx context.Context, a *config.APISource, delta bool, method string) (stream, error) {
			s, err := opened(ctx, a, delta, method)
			if err != nil || !first {
				return s, err
			}
			first = false
			return wildStream{s}, nil
		}
		r.start()
		r.open()
		time.Sleep(time.Minute) // for a new stream
		s := r.open()
		s.says()
		layer := func(key string) []proto.Message {
			l, err := structpb.NewStruct(map[string]any{key: 1.0})
			if err != nil {
				t.Fatal(err)
			}
			return []proto.Message{&runtimev3.Runtime{Name: "flags", Layer: l}}
		}
		if reply := s.answer(t, answer{kind: layerKind, version: "1", nonce: "n1", resources: layer("wild")}); !strings.Contains(reply, "error=") || !strings.Contains(reply, errPanic.Error()) {
			t.Errorf("reply %s", reply)
		}
		if reply := s.answer(t, answer{kind: layerKind, version: "2", nonce: "n2", resources: layer("tame")}); strings.Contains(reply, "error=") {
			t.Errorf("reply %s", reply)
		}
		if _, ok := r.layers.Load("flags"); !ok {
			t.Error("no values")
		}
		r.stop()
		if got := strings.Join(told, ", "); got != "discovery stream: boom, discovery update: bang" {
			t.Errorf("told of %s", got)
		}
	})
}
