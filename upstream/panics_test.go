package upstream

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/host"
)

// told collects where panics were.
type told struct {
	mu    sync.Mutex
	where []string
}

func (x *told) note(where string, v any) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.where = append(x.where, fmt.Sprint(where, ": ", v))
}

func (x *told) text() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return strings.Join(x.where, "\n")
}

type sourceFunc func(ctx context.Context, c *Cluster)

func (f sourceFunc) Run(ctx context.Context, c *Cluster) { f(ctx, c) }

// TestSec_24_SourcePanics: a source of hosts that panics has said all that it
// will, so that nobody waits for it, and the process goes on.
func TestSec_24_SourcePanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var x told
		r, _ := started(t, func(o *Config) {
			o.Recovered = x.note
			o.Source = func(*config.Cluster) (Source, error) {
				return sourceFunc(func(_ context.Context, c *Cluster) {
					c.UpdateHosts(0, &Assignment{Priorities: []PriorityHosts{{Hosts: []host.Spec{spec(1)}}}})
					panic("boom")
				}), nil
			}
		}, "name: c\ntype: EDS\neds_cluster_config: {eds_config: {ads: {}}}")
		synctest.Wait()
		if got := x.text(); got != "source of hosts: boom" {
			t.Errorf("told %q", got)
		}
		if got := picks(r.Cluster("c").Current(), 1); got != "1" {
			t.Errorf("picks %s", got)
		}
	})
}
