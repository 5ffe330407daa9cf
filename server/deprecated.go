package server

import (
	"log/slog"
	"sync"

	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/upstream"
)

// deprecations counts the uses of what the types of clusters call deprecated,
// and logs the first use of each.
type deprecations struct {
	uses *store.Counter
	seen *store.Gauge // by this process: it is not handed over
	log  *slog.Logger // nil: nothing is logged

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

// note looks at a cluster that was added. It may be called concurrently.
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
			d.log.Warn("deprecated, and may not be read for ever; further uses are only counted", "option", name, "cluster", p.Config().Name)
		}
	}
}
