package xds

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/config/decode"
)

// newIdleMux returns a mux that connects nowhere.
func newIdleMux(st *store.Store) *mux {
	return &mux{
		kept: newBudget(&Config{Store: st}), wake: make(chan struct{}, 1), stats: newControlStats(st.Root()), log: slog.New(slog.DiscardHandler),
		backoff: backoff{rand: rand.Uint64}, delta: true,
	}
}

// versions records the versions of the updates that it applies.
type versions struct {
	got    []string
	during func() // called by each update, if not nil
}

func (v *versions) apply(u *update) (bool, []fault) {
	v.got = append(v.got, u.version)
	if v.during != nil {
		v.during()
	}
	return true, nil
}

func (v *versions) started() {}

// TestSubscriberDuringAnUpdate: the resource is not known yet when the second
// subscriber comes, and not sent again.
func TestSubscriberDuringAnUpdate(t *testing.T) {
	st := store.New(store.Options{})
	m := newIdleMux(st)
	follow := func(v *versions) func() {
		return m.follow(newSubscription(endpointKind, "a", v, newUpdateStats(st.Root()), 0, m.guard))
	}
	first, second := new(versions), new(versions)
	first.during = func() { follow(second) }
	follow(first)
	m.topics[0].opened = true
	r := &response{typeURL: endpointKind.typeURL(), nonce: "n", update: update{version: "7", resources: []decode.Resource{{Name: "a", Version: "7", TypeURL: endpointKind.typeURL()}}}}
	if err := m.handle(r); err != nil {
		t.Fatal(err)
	}
	m.welcome()
	if want := []string{"7"}; !slices.Equal(first.got, want) || !slices.Equal(second.got, want) {
		t.Errorf("got %q and %q, want %q each", first.got, second.got, want)
	}
}

// TestDuplicatesAreRefused keeps the first of two resources with one name, which was
// applied, for later subscribers.
func TestDuplicatesAreRefused(t *testing.T) {
	st := store.New(store.Options{})
	m := newIdleMux(st)
	follow := func(v *versions) {
		m.follow(newSubscription(endpointKind, "a", v, newUpdateStats(st.Root()), 0, m.guard))
	}
	first, second := new(versions), new(versions)
	follow(first)
	m.topics[0].opened = true
	for _, list := range [][]string{{"1"}, {"2", "3"}} {
		r := &response{typeURL: endpointKind.typeURL(), nonce: "n", update: update{version: list[0]}}
		for _, v := range list {
			r.resources = append(r.resources, decode.Resource{Name: "a", Version: v, TypeURL: endpointKind.typeURL()})
		}
		if err := m.handle(r); err != nil {
			t.Fatal(err)
		}
	}
	if m.topics[0].reply.problem == "" {
		t.Error("the duplicate is not refused")
	}
	follow(second)
	m.welcome()
	if want := []string{"1", "2"}; !slices.Equal(first.got, want) || !slices.Equal(second.got, want[1:]) {
		t.Errorf("got %q, and a later subscriber %q; want %q and the last of them", first.got, second.got, want)
	}
}

// TestNoStreamWithoutSubscribers: names that all subscribers have left need no connection.
func TestNoStreamWithoutSubscribers(t *testing.T) {
	st := store.New(store.Options{})
	m := newIdleMux(st)
	if m.wanted() {
		t.Error("wanted before anyone subscribed")
	}
	stop := m.follow(newSubscription(endpointKind, "a", new(versions), newUpdateStats(st.Root()), 0, m.guard))
	if !m.wanted() {
		t.Error("not wanted with a subscriber")
	}
	stop()
	if m.wanted() {
		t.Error("wanted after the last subscriber left")
	}
}

// TestNoStreamOpensAfterTheEnd: a client that ends before its clusters exist opens none.
func TestNoStreamOpensAfterTheEnd(t *testing.T) {
	st := store.New(store.Options{})
	c, err := New(Config{Store: st, Decoder: decode.NewDecoder(decode.Options{})})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	m := c.newMux(&config.APISource{GRPC: []config.GRPCService{{ClusterName: "a"}}}, "m", false, st.Root())
	if s, err := m.open(ctx); s != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("%v, %v", s, err)
	}
}
