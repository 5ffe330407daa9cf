package server

import (
	"log/slog"
	"time"

	"github.com/statsd-admin/statsd-admin/store"
)

// collisionLog says when stats come to the metric name of others, which scrapers
// take for theirs, but not more often than once a minute.
type collisionLog struct {
	told uint64 // how many there were when the last line was written
	at   time.Time
}

// look logs new collisions. It is called before each flush and is not safe for concurrent use.
func (l *collisionLog) look(st *store.Store, now time.Time, log *slog.Logger) {
	n := st.Collisions()
	if n == l.told || !l.at.IsZero() && now.Sub(l.at) < time.Minute {
		return
	}
	last := st.LastCollision()
	log.Warn("stats come to the same metric name in the expositions; they share a series or one has a suffix",
		"new", n-l.told, "last", last.Name, "metric", last.Metric)
	l.told, l.at = n, now
}
