package server

import (
	"log/slog"
	"time"

	"github.com/statsd-admin/statsd-admin/store"
)

// collisionLog warns about stats that map to the same metric name, at most once a
// minute.
type collisionLog struct {
	logged uint64 // collisions at the last warning
	at     time.Time
}

// look logs new collisions. It is called before each flush and is not safe for
// concurrent use.
func (l *collisionLog) look(st *store.Store, now time.Time, log *slog.Logger) {
	n := st.Collisions()
	if n == l.logged || !l.at.IsZero() && now.Sub(l.at) < time.Minute {
		return
	}
	last := st.LastCollision()
	log.Warn("stats map to the same metric name; they share a series or get a suffix",
		"new", n-l.logged, "last", last.Name, "metric", last.Metric)
	l.logged, l.at = n, now
}
