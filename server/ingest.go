package server

import (
	"github.com/statsd-admin/statsd-admin/bootstrap"
	"github.com/statsd-admin/statsd-admin/statsd"
	"github.com/statsd-admin/statsd-admin/statsd/report"
	"github.com/statsd-admin/statsd-admin/store"
)

// Explainer returns a function that says what would become of a line in a
// server of this configuration that has received nothing yet. It binds nothing;
// where the file has no statsd section its defaults hold. The function may be
// called by any number of goroutines.
func Explainer(c *bootstrap.Config, boot Boot) (func(line []byte) report.Explanation, error) {
	opts, err := StoreOptions(c, boot.Product, boot.Tags, boot.FakeSymbols)
	if err != nil {
		return nil, err
	}
	cfg, err := statsdConfig(&c.StatsD)
	if err != nil {
		return nil, err
	}
	cfg.Store, cfg.Listeners = store.New(opts), nil
	s, err := statsd.New(cfg)
	if err != nil {
		return nil, err
	}
	return s.Explain, nil
}
