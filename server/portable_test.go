package server

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/internal/percpu"
	"github.com/statsd-admin/statsd-admin/server/logctl"
)

func TestPortableCountersAreReported(t *testing.T) {
	for perProcessor, want := range map[bool]int{true: 0, false: 1} {
		var out bytes.Buffer
		notePortable(slog.New(slog.NewTextHandler(&out, nil)), perProcessor)
		if strings.Count(out.String(), "\n") != want {
			t.Errorf("words for each processor %t: %q, want %d lines", perProcessor, &out, want)
		}
	}
	logs, err := logctl.New(logctl.Config{Level: logctl.Trace, Output: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(Config{Loggers: logs})
	if err != nil {
		t.Fatal(err)
	}
	var info struct {
		Portable bool `json:"portable_counters"`
	}
	if err := json.Unmarshal(s.Admin().Request("GET", "/server_info", nil).Body, &info); err != nil || info.Portable == percpu.Enabled {
		t.Errorf("/server_info: portable %t, %v", info.Portable, err)
	}
}
