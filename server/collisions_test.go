package server

import (
	"bytes"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/render"
	"github.com/statsd-admin/statsd-admin/store"
)

// TestCollisionsAreNamed checks that stats that map to the same metric name are
// counted immediately, and logged once a minute with a name.
func TestCollisionsAreNamed(t *testing.T) {
	st := store.New(store.Options{Product: "proxy"})
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	var l collisionLog
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	collide := func(names ...string) {
		t.Helper()
		for _, name := range names {
			st.Root().Counter(name).Inc()
		}
		if err := render.Exposition(io.Discard, st, render.Options{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		after time.Duration
		names []string
		want  string // of the line that is logged; empty: none
		count uint64
	}{
		{0, []string{"a.b"}, "", 0},
		{0, []string{"a-b"}, "new=1 last=a-b metric=proxy_a_b", 1},
		{0, []string{"a:b"}, "", 2},
		{59 * time.Second, []string{"a+b"}, "", 3},
		{time.Second, nil, "new=2 last=a+b metric=proxy_a_b", 3},
		{time.Hour, nil, "", 3},
		{0, []string{"c.d", "c_d"}, "new=1 last=c_d metric=proxy_c_d", 4},
	} {
		now = now.Add(step.after)
		collide(step.names...)
		out.Reset()
		l.look(st, now, log)
		if got := out.String(); !strings.Contains(got, step.want) || strings.Count(got, "level=WARN") != min(len(step.want), 1) {
			t.Errorf("after %q the log has %q, want %q", step.names, got, step.want)
		}
		if got := st.Collisions(); got != step.count {
			t.Errorf("after %q %d are counted, want %d", step.names, got, step.count)
		}
	}
}
