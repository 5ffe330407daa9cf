package server_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/statsd-admin/statsd-admin/server"
)

func TestBaseIDIsWrittenWithoutHotRestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "id")
	s, err := server.New(server.Config{CommandLine: server.CommandLine{BaseID: 7, BaseIDPath: path, Mode: "InitOnly"}, Admin: anyPort(), Loggers: quiet(t)})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "7" {
		t.Errorf("%q, %v", got, err)
	}
}
