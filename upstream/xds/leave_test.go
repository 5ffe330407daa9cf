package xds

import (
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/upstream/config"
)

// TestRemoved removes members in random order.
func TestRemoved(t *testing.T) {
	type member struct{ place int }
	place := func(m *member) *int { return &m.place }
	rest := make([]*member, 100)
	for i := range rest {
		rest[i] = &member{i}
	}
	list := slices.Clone(rest)
	rand.Shuffle(len(rest), func(i, j int) { rest[i], rest[j] = rest[j], rest[i] })
	for len(rest) > 0 {
		x := rest[0]
		rest = rest[1:]
		list = removed(list, x, place)
		list = removed(list, x, place) // is not there any more
		if len(list) != len(rest) {
			t.Fatalf("%d members, want %d", len(list), len(rest))
		}
		for i, m := range list {
			if m.place != i || !slices.Contains(rest, m) {
				t.Fatalf("member at place %d thinks it is at %d", i, m.place)
			}
		}
	}
}

// TestAllLeave: the time in which all users of a resource leave does not grow with the
// square of their number. That would take many times the limit.
func TestAllLeave(t *testing.T) {
	const users, limit = 200_000, 3 * time.Second
	for name, follow := range map[string]func() (leave func()){
		"subscriptions": func() func() func() {
			m, stats := newIdleMux(store.New(store.Options{})), updateStats{}
			return func() func() { return m.follow(&subscription{kind: endpointKind, name: "a", stats: stats}) }
		}(),
		"secrets": func() func() func() {
			c, err := New(Config{Store: store.New(store.Options{}), Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			return func() func() {
				return c.secrets.Follow(&config.SecretSource{Name: "cert"}, config.CertificateSecret, new(pickyUser))
			}
		}(),
	} {
		t.Run(name, func(t *testing.T) {
			stops := make([]func(), users)
			for i := range stops {
				stops[i] = follow()
			}
			begin := time.Now()
			for _, stop := range stops {
				stop()
			}
			if took := time.Since(begin); took > limit {
				t.Errorf("%d users took %v to leave", users, took)
			}
		})
	}
}
