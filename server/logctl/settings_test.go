package logctl

import (
	"errors"
	"maps"
	"testing"
)

// TestRestore takes back changes of all kinds with the settings before them, in both
// modes.
func TestRestore(t *testing.T) {
	for _, fineGrain := range []bool{false, true} {
		r, _ := mustNew(t, Config{Names: []string{"admin", "main", "http"}, Level: Info, FineGrain: fineGrain})
		for _, change := range []func(*Registry) error{
			func(r *Registry) error { return r.SetPaths("main:debug,http:off") },
			func(r *Registry) error { return r.Set("main", "trace") },
			func(r *Registry) error { return r.SetAll("error") },
		} {
			settings, list := r.Settings(), levels(r)
			clone := r.Clone()
			if err := change(clone); err != nil {
				t.Fatal(err)
			}
			if !maps.Equal(r.Settings(), settings) {
				t.Fatalf("a change of the clone changed %v to %v", settings, r.Settings())
			}
			if err := change(r); err != nil {
				t.Fatal(err)
			}
			if !maps.Equal(r.Settings(), clone.Settings()) || levels(r) != levels(clone) || r.lowest.Load() != clone.lowest.Load() {
				t.Errorf("the clone has %v, the registry %v", clone.Settings(), r.Settings())
			}
			lowest := r.lowest.Load()
			if err := r.Restore(settings); err != nil || !maps.Equal(r.Settings(), settings) || levels(r) != list {
				t.Errorf("after the return: %v %v, want %v", err, r.Settings(), settings)
			}
			if fineGrain && r.lowest.Load() == lowest {
				t.Error("the lowest level stayed")
			}
			if err := change(r); err != nil {
				t.Fatal(err)
			}
		}
		settings := r.Settings()
		for _, bad := range []map[string]string{{"level": "loud"}, {"level": "debug", "main": "loud"}, {"level": "debug", "paths": "main"}, {"paths": "main:debug", "nobody": "info"}} {
			if err := r.Restore(bad); err == nil || !maps.Equal(r.Settings(), settings) {
				t.Errorf("%v: %v, settings %v", bad, err, r.Settings())
			}
		}
		if err := r.Restore(map[string]string{"level": "debug", "nobody": "info"}); !errors.Is(err, ErrUnknownLogger) || !maps.Equal(r.Settings(), settings) {
			t.Errorf("an unknown logger: %v, settings %v", err, r.Settings())
		}
	}
}

// TestRestoreOfOneLogger checks that other loggers and the level of loggers to come
// stay.
func TestRestoreOfOneLogger(t *testing.T) {
	r, _ := mustNew(t, Config{Names: []string{"admin", "main"}, Level: Info})
	if err := r.Restore(map[string]string{"main": "off"}); err != nil || levels(r) != "admin:info main:off" || r.Settings()["level"] != "info" {
		t.Errorf("%v %s %v", err, levels(r), r.Settings())
	}
	if err := r.Restore(map[string]string{"level": "trace"}); err != nil || levels(r) != "admin:info main:off" {
		t.Errorf("%v %s", err, levels(r))
	}
	r.Logger("new")
	if levels(r) != "admin:info main:off new:trace" {
		t.Errorf("with a new logger: %s", levels(r))
	}
}
