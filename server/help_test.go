package server_test

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
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

// TestStatistics checks that every metric of a server with all kinds of listeners of lines,
// a relay and a sink has a help text, and keeps docs/statistics.md equal to these. Those
// of clusters have none.
func TestStatistics(t *testing.T) {
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
	rows := map[string]string{}
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
			about := described[family]
			if about.Help == "" || !strings.HasSuffix(about.Help, ".") {
				t.Errorf("the help text of %s is %q", family, about.Help)
			}
			var tags []string
			for _, l := range c.Labels() {
				tags = append(tags, "`"+l.Name.String()+"`")
			}
			rows[family] = fmt.Sprintf("| `%s` | %s | %v | %s |\n", family, strings.Join(tags, ", "), k, strings.ReplaceAll(about.Help, "|", `\|`))
		}
	}
	var page strings.Builder
	page.WriteString(statisticsIntro)
	group := ""
	for _, family := range slices.Sorted(maps.Keys(rows)) {
		if first, _, _ := strings.Cut(family, "."); first != group {
			group = first
			fmt.Fprintf(&page, "\n## %s\n\n| Name | Tags | Kind | Meaning |\n|---|---|---|---|\n", group)
		}
		page.WriteString(rows[family])
	}
	compareDoc(t, "../docs/statistics.md", []byte(page.String()))
	if n < 100 {
		t.Errorf("there are %d stats only", n)
	}
}

const statisticsIntro = `# Statistics of the daemon

What the daemon counts about itself, generated from the help texts of a server with an input for lines, a relay and a sink
(` + "`go test ./server -run TestStatistics -update`" + `). Names are those of ` + "`/stats`" + `, where the values of tags are part of them; in the
exposition dots are underscores and the product's name comes first. A metric is there when its part is: no relay, no
` + "`relay.*`" + `. Clusters have the statistics of [clusters.md](clusters.md); the Go runtime's are ` + "`go_*`" + `, the process's ` + "`process_*`" + `.
`
