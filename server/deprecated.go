package server

import (
	"log/slog"
	"sync"

	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/upstream"
)

// deprecations counts uses of deprecated cluster options and logs the first use of
// each.
type deprecations struct {
	uses *store.Counter
	seen *store.Gauge // of this process; not handed over
	log  *slog.Logger // nil disables logging

	logged sync.Map // names
}

func (d *deprecations) init(sc *store.Scope, log *slog.Logger, quiet bool) {
	d.uses = sc.Counter("deprecated_feature_use")
	d.seen = sc.GaugeWithMode("deprecated_feature_seen_since_process_start", store.NeverImport)
	d.seen.Set(0)
	if !quiet {
		d.log = log
	}
}

// note checks an added cluster. It is safe for concurrent use.
func (d *deprecations) note(p upstream.Parsed) {
	message, ok := p.(interface{ Deprecated() []string })
	if !ok {
		return
	}
	for _, name := range message.Deprecated() {
		d.uses.Inc()
		d.seen.Inc()
		if d.log == nil {
			continue
		}
		if _, before := d.logged.LoadOrStore(name, true); !before {
			d.log.Warn("deprecated option, to be removed in a future version; further uses are only counted", "option", name, "cluster", p.Config().Name)
		}
	}
}
