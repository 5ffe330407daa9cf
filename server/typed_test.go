package server_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/server"
	"github.com/statsd-admin/statsd-admin/store"
)

// TestAnswersAsCalls checks that the contents of the admin port are available as
// method calls, also without an admin port.
func TestAnswersAsCalls(t *testing.T) {
	s := start(t, server.Config{
		Admin: anyPort(), TraceMutexes: true, Version: "a/1.2.3/Clean/RELEASE/go", StatsD: statsdOn("udp://127.0.0.1:0"),
		CommandLine: server.CommandLine{ServiceNode: "n"}, Store: store.New(store.Options{}),
	})
	var info struct {
		Version string
		State   string
		Options struct {
			Node string `json:"service_node"`
		} `json:"command_line_options"`
	}
	if err := json.Unmarshal([]byte(s.get(t, "/server_info")), &info); err != nil {
		t.Fatal(err)
	}
	if got := s.Info(); got.Version != info.Version || got.CommandLine.ServiceNode != info.Options.Node || info.Options.Node != "n" || s.Lifecycle().State().String() != info.State {
		t.Errorf("%+v, %v; shown is %+v", got, s.Lifecycle().State(), info)
	}
	if c, traced := s.Contention(); !traced || !strings.Contains(s.get(t, "/contention"), `"num_contentions": "`) {
		t.Errorf("contention: %+v, %v; shown is %s", c, traced, s.get(t, "/contention"))
	}
	if err := s.Loggers().SetAll("error"); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	text.WriteString("active loggers:\n")
	for _, l := range s.Loggers().List() {
		text.WriteString("  " + l.Name + ": " + l.Level.String() + "\n")
	}
	if got, want := string(s.post(t, "/logging").Body), text.String()+"\n"; got != want || !strings.Contains(want, "main: error") {
		t.Errorf("loggers: shown is %q, want %q", got, want)
	}
	if got, want := s.get(t, "/listeners"), string(s.Listeners().AppendText(nil)); got != want || want == "" {
		t.Errorf("listeners: shown is %q, want %q", got, want)
	}
	if err := s.Runtime().Modify(map[string]string{"a": "7"}); err != nil {
		t.Fatal(err)
	}
	if got := s.get(t, "/runtime"); s.Runtime().Snapshot().Uint("a", 0) != 7 || !strings.Contains(got, `"final_value": "`+strconv.Itoa(7)+`"`) {
		t.Errorf("runtime: shown is %s", got)
	}
	s.Lifecycle().FailHealth()
	if got := s.get(t, "/ready"); got != "DRAINING\n" {
		t.Errorf("state: shown is %q", got)
	}

	alone, err := server.New(server.Config{Loggers: quiet(t)})
	if err != nil {
		t.Fatal(err)
	}
	if c, traced := alone.Contention(); traced || c.Contentions != 0 {
		t.Errorf("nothing is traced, but there are %+v", c)
	}
	if alone.Info().HotRestartInitializing || alone.Loggers() == nil {
		t.Errorf("%+v", alone.Info())
	}
}
