package xds

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	runtimev3 "github.com/envoyproxy/go-control-plane/envoy/service/runtime/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/statsd-admin/statsd-admin/internal/guard"
	"github.com/statsd-admin/statsd-admin/internal/guard/guardtest"
	"github.com/statsd-admin/statsd-admin/internal/waittest"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/transport"
)

// recovering returns a client that reports its panics to a new collection.
func recovering(t *testing.T) (*guardtest.Panics, func(*Config)) {
	panics := guardtest.New(t)
	return panics, func(c *Config) { c.CDS, c.Logger = nil, panics.Logger() }
}

// withLayer adds a runtime layer, flags.
func withLayer(c *Config) {
	c.Layers = []Layer{{Name: "flags", Source: config.ConfigSource{Kind: config.SourceADS}}}
}

// flags is a runtime layer that sets a key.
func flags(t *testing.T, key string) []proto.Message {
	t.Helper()
	l, err := structpb.NewStruct(map[string]any{key: 1.0})
	if err != nil {
		t.Fatal(err)
	}
	return []proto.Message{&runtimev3.Runtime{Name: "flags", Layer: l}}
}

// inForce fails unless the layer that s delivers is applied.
func (r *rig) inForce(t *testing.T, s *fakeStream) {
	t.Helper()
	s.says()
	if reply := s.answer(t, answer{kind: layerKind, version: "9", nonce: "n9", resources: flags(t, "tame")}); strings.Contains(reply, "error=") {
		t.Errorf("reply %s", reply)
	}
	if _, ok := r.layers.Load("flags"); !ok {
		t.Error("no values")
	}
}

// wildStream panics in Recv.
type wildStream struct{ stream }

func (wildStream) Recv() (*response, error) { panic(guardtest.Canary) }

// wildWriter panics in Send.
type wildWriter struct{ stream }

func (wildWriter) Send(proto.Message) error { panic(guardtest.Canary) }

// TestUpdatesPanic checks that an update whose handler panics is refused, that a
// stream is reopened after a panic, and that later updates are applied.
func TestUpdatesPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		panics, change := recovering(t)
		r := newRig(t, false, func(c *Config) {
			change(c)
			withLayer(c)
			set := c.SetLayer
			c.SetLayer = func(name string, values map[string]any) error {
				if values["wild"] != nil {
					panic(guardtest.Canary)
				}
				return set(name, values)
			}
		})
		opened, streams := r.c.open, 0
		r.c.open = func(ctx context.Context, a *config.APISource, delta bool, method string) (stream, error) {
			s, err := opened(ctx, a, delta, method)
			streams++
			switch streams {
			case 1:
				return wildStream{s}, err
			case 2:
				return wildWriter{s}, err
			}
			return s, err
		}
		r.start()
		r.open()
		time.Sleep(time.Minute) // for new streams
		r.open()
		s := r.open()
		s.says()
		if reply := s.answer(t, answer{kind: layerKind, version: "1", nonce: "n1", resources: flags(t, "wild")}); !strings.Contains(reply, "error=") || !strings.Contains(reply, errPanic.Error()) {
			t.Errorf("reply %s", reply)
		}
		r.inForce(t, s)
		r.stop()
		panics.Caught("reading of a discovery stream")
		panics.Caught("writing to a discovery stream")
		panics.Caught("discovery update")
	})
}

// wildSink panics when it is started.
type wildSink struct{ updates int }

func (w *wildSink) apply(*update) (changed bool, faults []fault) {
	w.updates++
	return true, nil
}

func (w *wildSink) started() { panic(guardtest.Canary) }

// TestPanicsOfTheStartStayAlone checks that updates after a panic in started are
// applied.
func TestPanicsOfTheStartStayAlone(t *testing.T) {
	var panicking guard.Guard
	w := new(wildSink)
	s := newSubscription(endpointKind, "a", w, newUpdateStats(store.New(store.Options{}).Root()), 0, panicking)
	for i, want := range []bool{false, true, true} {
		if got := panicking.Run("update", func() { s.update(&update{}) }); got != want || w.updates != i+1 {
			t.Errorf("update %d: goes well %t, want %t; %d applied", i, got, want, w.updates)
		}
	}
}

// wildUser panics for some secrets.
type wildUser struct{ answered, prepared, wild bool }

func (u *wildUser) Prepare(s *transport.Secret) (commit func(), err error) {
	u.prepared = true
	if u.wild {
		panic(guardtest.Canary)
	}
	return func() {}, nil
}

func (u *wildUser) Answered() {
	u.answered = true
	if u.wild {
		panic(guardtest.Canary)
	}
}

// TestPanicsOfOneContextStayAlone mixes contexts that panic with others.
func TestPanicsOfOneContextStayAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		panics, change := recovering(t)
		r := newRig(t, false, change)
		r.start()
		src := &config.SecretSource{Name: "cert", Source: &config.ConfigSource{Kind: config.SourceADS}}
		var panicking guard.Guard
		follow := func(u *wildUser) (stop func()) {
			stop = func() {}
			panicking.Run("follow", func() { stop = r.c.Secrets().Follow(src, config.CertificateSecret, u) })
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
		panics.Caught("answer about a secret")
		panics.Caught("discovery update")
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

func (w wildLog) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == "discovery stream failed" {
		panic(guardtest.Canary)
	}
	return w.Handler.Handle(ctx, r)
}

// TestFailuresPanic checks that a panic in the report of a failed stream does not
// keep the next stream from being opened.
func TestFailuresPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		panics, change := recovering(t)
		r := newRig(t, false, func(c *Config) {
			change(c)
			withLayer(c)
			c.Logger = slog.New(wildLog{panics.Logger().Handler()})
		})
		opened, first := r.c.open, true
		r.c.open = func(ctx context.Context, a *config.APISource, delta bool, method string) (stream, error) {
			if first {
				first = false
				return nil, errors.New("no server")
			}
			return opened(ctx, a, delta, method)
		}
		r.start()
		time.Sleep(time.Minute)
		r.inForce(t, r.open())
		r.stop()
		panics.Caught("failed discovery stream")
	})
}

// TestOpeningPanics checks that a panic while a stream is opened is retried, with a
// delay even if computing the delay panics.
func TestOpeningPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		panics, change := recovering(t)
		wild := 0
		r := newRig(t, false, func(c *Config) {
			change(c)
			withLayer(c)
			rand := c.Rand
			c.Rand = func() uint64 {
				if wild > 0 {
					panic(guardtest.Canary)
				}
				return rand()
			}
		})
		opened := r.c.open
		r.c.open = func(ctx context.Context, a *config.APISource, delta bool, method string) (stream, error) {
			if wild++; wild < 3 {
				panic(guardtest.Canary)
			}
			wild = 0
			return opened(ctx, a, delta, method)
		}
		begun := time.Now()
		r.start()
		for range 2 {
			panics.Caught("discovery stream")
			panics.Caught("pause after a discovery stream")
		}
		time.Sleep(lastDelay)
		if took := time.Since(begun); took != 2*lastDelay {
			t.Errorf("opened after %v", took)
		}
		r.inForce(t, r.open())
		r.stop()
	})
}

// TestPartsPanic checks that a panic ends one part of the client and that Run goes
// on.
func TestPartsPanic(t *testing.T) {
	spoiled := func(t *testing.T, change func(*Config), spoil func(*Client), f func(*rig, *guardtest.Panics)) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			panics, base := recovering(t)
			r := newWildRig(t, false, func(c *Config) { base(c); change(c) }, spoil)
			r.start()
			f(r, panics)
			r.stop()
		})
	}
	layerWorks := func(r *rig) { r.inForce(t, r.open()) }
	spoiled(t, func(*Config) {}, func(c *Client) { c.ads.topics = []*topic{nil} }, func(_ *rig, panics *guardtest.Panics) {
		panics.Caught("aggregated stream")
	})
	spoiled(t, withLayer, func(c *Client) { c.secrets.feeds = map[string]*secretFeed{"x": nil} }, func(r *rig, panics *guardtest.Panics) {
		panics.Caught("secrets")
		layerWorks(r)
		// Followers of a secret wait, and nothing else does.
		r.c.Secrets().Follow(&config.SecretSource{Name: "cert", Source: &config.ConfigSource{Kind: config.SourceADS}}, config.CertificateSecret, new(wildUser))()
	})
	spoiled(t, func(c *Config) {
		withLayer(c)
		c.CDS = &config.ConfigSource{Kind: config.SourceADS}
	}, func(c *Client) { c.clusters.c = nil }, func(r *rig, panics *guardtest.Panics) {
		panics.Caught("clusters")
		layerWorks(r)
	})
	spoiled(t, func(c *Config) {
		withLayer(c)
		c.Layers = append(c.Layers, Layer{Name: "wild", Source: c.Layers[0].Source})
	}, func(c *Client) { c.o.Layers[1].Source = config.ConfigSource{Kind: config.SourceAPI} }, func(r *rig, panics *guardtest.Panics) {
		panics.Caught("runtime layer")
		layerWorks(r)
		<-r.c.LayersReady() // does not wait for it
	})
	spoiled(t, withLayer, func(c *Client) { close(c.layersReady) }, func(r *rig, panics *guardtest.Panics) {
		layerWorks(r)
		panics.Caught("runtime layers")
	})
}

// TestLateDiscoveryPanics checks that a panic in started after a timeout blocks
// nothing and that later responses count.
func TestLateDiscoveryPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		panics := guardtest.New(t)
		w := new(wildSink)
		s := newSubscription(endpointKind, "a", w, newUpdateStats(store.New(store.Options{}).Root()), time.Second, panics.Guard())
		panics.Caught("late discovery")
		s.update(&update{})
		if w.updates != 1 {
			t.Errorf("%d updates", w.updates)
		}
	})
}

// TestSecretFeedsPanic checks that a panic about one secret blocks neither its users
// nor other secrets.
func TestSecretFeedsPanic(t *testing.T) {
	ads := &config.ConfigSource{Kind: config.SourceADS}
	synctest.Test(t, func(t *testing.T) {
		panics, change := recovering(t)
		r := newRig(t, false, change)
		r.start()
		var wild, other wildUser
		// Check refuses a source without an API; this test skips it.
		leaveWild := r.c.Secrets().Follow(&config.SecretSource{Name: "wild", Source: &config.ConfigSource{Kind: config.SourceAPI}}, config.CertificateSecret, &wild)
		panics.Caught("secret")
		synctest.Wait()
		if !wild.answered {
			t.Error("the user of a secret that will not arrive still waits")
		}
		leaveWild()
		leave := r.c.Secrets().Follow(&config.SecretSource{Name: "cert", Source: ads}, config.CertificateSecret, &other)
		s := r.open()
		s.says()
		s.answer(t, answer{kind: secretKind, version: "1", nonce: "n1", resources: []proto.Message{certSecret(t, 1)}})
		if !other.answered || !other.prepared {
			t.Errorf("another secret: %+v", other)
		}
		for _, f := range r.c.secrets.feeds {
			f.scope = nil
		}
		leave()
		panics.Caught("end of a secret")
		r.stop()
	})
	synctest.Test(t, func(t *testing.T) {
		panics, change := recovering(t)
		r := newRig(t, false, change)
		r.start()
		var user wildUser
		defer r.c.Secrets().Follow(&config.SecretSource{Name: "cert", Source: ads}, config.CertificateSecret, &user)()
		var feed *secretFeed
		for _, f := range r.c.secrets.feeds {
			feed = f
		}
		feed.watch <- struct{}{} // though there is no secret yet
		panics.Caught("watch of the files of a secret")
		s := r.open()
		s.says()
		s.answer(t, answer{kind: secretKind, version: "1", nonce: "n1", resources: []proto.Message{certSecret(t, 1)}})
		reload := func(wild bool) {
			feed.mu.Lock()
			feed.digest++ // as if its files had changed
			user.wild, user.prepared = wild, false
			feed.mu.Unlock()
			feed.watch <- struct{}{}
			synctest.Wait()
			if !user.prepared {
				t.Error("files that changed are not read")
			}
		}
		reload(true)
		panics.Caught("files of a secret")
		reload(false)
		r.stop()
	})
}

// TestStaleAssignmentPanics lets an expiry panic because its cluster is missing and
// checks that the next assignment is applied.
func TestStaleAssignmentPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		panics, change := recovering(t)
		r := newRig(t, false, func(c *Config) {
			cds := c.CDS
			change(c)
			c.CDS = cds
		})
		r.start()
		s := r.open()
		s.answer(t, answer{kind: clusterKind, version: "1", nonce: "n1", resources: []proto.Message{edsCluster("a")}})
		a := endpointsOf("a", 1)
		a.Policy = stale(time.Minute)
		s.answer(t, answer{kind: endpointKind, version: "e1", nonce: "n2", resources: []proto.Message{a}})
		var e *endpoints
		r.c.ads.mu.Lock()
		for _, x := range r.c.ads.topics {
			if a := x.entries["a"]; a != nil && x.kind == endpointKind {
				e = a.subscribers[0].sink.(*endpoints)
			}
		}
		r.c.ads.mu.Unlock()
		e.mu.Lock()
		cl := e.cl
		e.cl = nil
		e.mu.Unlock()
		panics.Caught("stale assignment")
		e.mu.Lock()
		e.cl = cl
		e.mu.Unlock()
		s.answer(t, answer{kind: endpointKind, version: "e2", nonce: "n3", resources: []proto.Message{endpointsOf("a", 2)}})
		equal(t, "hosts", r.hosts("a"), ":2")
		r.stop()
	})
}

// missingLog panics once when a file is missing.
type missingLog struct {
	slog.Handler
	panicking *int
}

func (missingLog) Enabled(context.Context, slog.Level) bool { return true }
func (m missingLog) WithAttrs([]slog.Attr) slog.Handler     { return m }

func (m missingLog) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == "cannot read discovery file" {
		if *m.panicking++; *m.panicking == 1 {
			panic(guardtest.Canary)
		}
	}
	return m.Handler.Handle(ctx, r)
}

// TestFilePanics checks that a file is read again when it changes after a panic.
func TestFilePanics(t *testing.T) {
	panics := guardtest.New(t)
	panicking, dir := 0, t.TempDir()
	cds, eds := filepath.Join(dir, "cds.yaml"), filepath.Join(dir, "eds.json")
	d := newOnDisk(t, config.ConfigSource{Kind: config.SourcePath, Path: cds}, func(c *Config) {
		c.Logger = slog.New(missingLog{panics.Logger().Handler(), &panicking})
	}, dir)
	panics.Caught("discovery file")
	put(t, eds, fmt.Sprintf(fileOfHosts, "a", 1))
	put(t, cds, fmt.Sprintf(fileOfClusters, "1", "a", eds))
	waittest.Equal(t, "hosts", ":1", func() string { return d.hosts("a") })
}

// TestConnectingPanics checks that a panic while the gRPC library connects counts as
// a failed connection, and that another one is tried.
func TestConnectingPanics(t *testing.T) {
	good := (&answer{kind: clusterKind, version: "1", nonce: "n", resources: []proto.Message{edsCluster("a")}}).encode(t, false)
	address := badServer(t, func(_ int, s grpc.ServerStream) error {
		var q []byte
		if err := errors.Join(s.RecvMsg(&q), s.SendMsg(good)); err != nil {
			return err
		}
		<-s.Context().Done()
		return nil
	})
	panics := guardtest.New(t)
	var first sync.Once
	r := overWildGRPC(t, address, "lb_policy: RANDOM", func(c *Config) { c.Logger = panics.Logger() }, func() uint64 {
		if bytes.Contains(debug.Stack(), []byte("upstream.(*Manager).DialGRPC(")) { // the call that picks the host of the control plane
			first.Do(func() { panic(guardtest.Canary) })
		}
		return 0
	})
	panics.Caught("connection to a control plane")
	waittest.Equal(t, "clusters", "update_success=1", func() string { return r.counts("cluster_manager.cds.update_success") })
	equal(t, "failures", r.counts("cluster_manager.cds.update_failure"), "update_failure=1")
}
