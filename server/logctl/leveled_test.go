package logctl

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"testing/slogtest"
)

// TestHandlerKeepsTheContract runs the checks of the standard library.
func TestHandlerKeepsTheContract(t *testing.T) {
	var out bytes.Buffer
	r, err := New(Config{Names: []string{"main"}})
	if err != nil {
		t.Fatal(err)
	}
	err = slogtest.TestHandler(r.Handler("jobs", slog.NewJSONHandler(&out, nil)), func() []map[string]any {
		var all []map[string]any
		for line := range bytes.Lines(out.Bytes()) {
			var m map[string]any
			if err := json.Unmarshal(line, &m); err != nil {
				t.Fatal(err)
			}
			all = append(all, m)
		}
		return all
	})
	if err != nil {
		t.Error(err)
	}
}

func TestHandlerHasTheLevelOfItsLogger(t *testing.T) {
	for _, fine := range []bool{false, true} {
		var out bytes.Buffer
		r, err := New(Config{Names: []string{"main"}, Level: Info, FineGrain: fine})
		if err != nil {
			t.Fatal(err)
		}
		log := slog.New(r.Handler("jobs", slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))).With("a", 1).WithGroup("g")
		log.Debug("one")
		log.Info("two", "k", "v")
		name := "jobs"
		if fine {
			name = "leveled_test"
		}
		if err := r.SetPaths(name + ":debug"); err != nil {
			t.Fatal(err)
		}
		log.Debug("three")
		logElsewhere(log) // a level of its own only in fine-grained mode
		if err := r.SetPaths(name + ":off"); err != nil {
			t.Fatal(err)
		}
		log.Error("four")
		got := out.String()
		for text, want := range map[string]bool{"msg=one": false, "msg=two a=1 g.k=v": true, "msg=three": true, "level=DEBUG msg=t a=1": !fine, "level=WARN msg=t a=1": true, "msg=four": false} {
			if strings.Contains(got, text) != want {
				t.Errorf("fine-grained %t: %q is in the output: %t, want %t\n%s", fine, text, !want, want, got)
			}
		}
		if !fine && r.List()[1].Name != "jobs" {
			t.Errorf("list: %v", r.List())
		}
	}
}
