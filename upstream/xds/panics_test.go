package xds

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	runtimev3 "github.com/envoyproxy/go-control-plane/envoy/service/runtime/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/statsd-admin/statsd-admin/internal/guard"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/transport"
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

// wildSink panics when it is started.
type wildSink struct{ updates int }

func (w *wildSink) apply(*update) (changed bool, faults []fault) {
	w.updates++
	return true, nil
}

func (w *wildSink) started() { panic("bang") }

// TestPanicsOfTheStartStayAlone: the updates that follow are as any other.
func TestPanicsOfTheStartStayAlone(t *testing.T) {
	var told guard.Told = func(string, any) {}
	w := new(wildSink)
	s := newSubscription(endpointKind, "a", w, newUpdateStats(store.New(store.Options{}).Root()), 0, told)
	for i, want := range []bool{false, true, true} {
		if got := told.Run("update", func() { s.update(&update{}) }); got != want || w.updates != i+1 {
			t.Errorf("update %d: goes well %t, want %t; %d applied", i, got, want, w.updates)
		}
	}
}

// wildUser panics for some secrets.
type wildUser struct{ answered, prepared, wild bool }

func (u *wildUser) Prepare(s *transport.Secret) (commit func(), err error) {
	u.prepared = true
	if u.wild {
		panic("bang")
	}
	return func() {}, nil
}

func (u *wildUser) Answered() {
	u.answered = true
	if u.wild {
		panic("bang")
	}
}

// TestPanicsOfOneContextStayAlone has contexts that panic among those that do not.
func TestPanicsOfOneContextStayAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, false, func(c *Config) { c.CDS = nil })
		r.start()
		src := &config.SecretSource{Name: "cert", Source: &config.ConfigSource{Kind: config.SourceADS}}
		var told guard.Told = func(string, any) {}
		follow := func(u *wildUser) (stop func()) {
			stop = func() {}
			told.Run("follow", func() { stop = r.c.Secrets().Follow(src, config.CertificateSecret, u) })
			return stop
		}
		var users [3]wildUser
		users[0].wild = true
		for i := range users[:2] {
			defer follow(&users[i])()
		}
		s := r.open()
		s.says()
		s.answer(t, answer{kind: secretKind, version: "1", nonce: "n1", resources: []proto.Message{certSecret(t, 1)}})
		if !users[0].answered || !users[1].answered {
			t.Errorf("answered: %+v", users)
		}
		users[0].wild = false
		s.answer(t, answer{kind: secretKind, version: "2", nonce: "n2", resources: []proto.Message{certSecret(t, 1)}})
		wild := wildUser{wild: true}
		follow(&wild)
		defer follow(&users[2])()
		if !wild.prepared || !users[2].prepared {
			t.Errorf("who comes later: %+v, %+v", wild, users[2])
		}
		r.stop()
	})
}

// wildLog panics when a stream has failed.
type wildLog struct{ slog.Handler }

func (wildLog) Enabled(context.Context, slog.Level) bool { return true }
func (w wildLog) WithAttrs([]slog.Attr) slog.Handler     { return w }

func (wildLog) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "discovery stream failed" {
		panic("bang")
	}
	return nil
}

// TestSec_24_FailuresPanic: who panics when told that a stream has failed does not
// keep another one from being opened.
func TestSec_24_FailuresPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := make(chan string, 9)
		r := newRig(t, false, func(c *Config) {
			c.Logger = slog.New(wildLog{slog.DiscardHandler})
			c.Recovered = func(where string, v any) { told <- fmt.Sprint(where, ": ", v) }
		})
		opened, first := r.c.open, true
		r.c.open = func(ctx context.Context, a *config.APISource, delta bool, method string) (stream, error) {
			if first {
				first = false
				return nil, errors.New("nobody there")
			}
			return opened(ctx, a, delta, method)
		}
		r.start()
		time.Sleep(time.Minute)
		r.open()
		r.stop()
		if got := <-told; got != "failed discovery stream: bang" {
			t.Errorf("told of %s", got)
		}
	})
}
