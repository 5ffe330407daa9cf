package server_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/flush/jsonlines"
	"github.com/statsd-admin/statsd-admin/flush/sinkqueue"
	"github.com/statsd-admin/statsd-admin/server"
	"github.com/statsd-admin/statsd-admin/statsd"
	"github.com/statsd-admin/statsd-admin/statsd/relay"
	"github.com/statsd-admin/statsd-admin/store"
)

// TestOwnMetricsHaveHelp checks that every metric of a server with all kinds of listeners
// of lines, a relay and a sink has a help text. Those of clusters have none.
func TestOwnMetricsHaveHelp(t *testing.T) {
	dir := t.TempDir()
	st := store.New(store.Options{})
	sink, err := jsonlines.New(jsonlines.Config{Options: sinkqueue.Options{Store: st}, Path: filepath.Join(dir, "out")})
	if err != nil {
		t.Fatal(err)
	}
	start(t, server.Config{
		Store: st, Admin: anyPort(), Flush: flush.Config{Interval: time.Minute, Sinks: []flush.Sink{sink}},
		StatsD: &statsd.Config{
			Listeners: []statsd.ListenerConfig{
				{Name: "lines", Address: "unixlines://" + filepath.Join(dir, "l")}, {Name: "udp", Address: "udp://127.0.0.1:0"},
				{Name: "framed", Address: "unixstream://" + filepath.Join(dir, "f")},
			},
			Relay: []relay.Route{{Targets: []relay.Target{{Name: "a", Address: "udp://127.0.0.1:9"}}}},
		},
	})
	described := st.Descriptions()
	v := st.View()
	defer v.Close()
	n := 0
	for k := range store.KindHistogram + 1 {
		if k == store.KindText {
			continue
		}
		for c := v.ByFamily(k); c.Next(); n++ {
			family := c.Name()
			if f := c.Family(); f != nil {
				family = f.String()
			}
			help := described[family].Help
			if help == "" || !strings.HasSuffix(help, ".") {
				t.Errorf("the help text of %s is %q", family, help)
			}
		}
	}
	if n < 100 {
		t.Errorf("there are %d stats only", n)
	}
}
