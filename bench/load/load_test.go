package main

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestPacketsHaveTheMix(t *testing.T) {
	for _, c := range cases("/tmp") {
		lines, kinds := 0, map[string]int{}
		for _, p := range packets(c) {
			for l := range strings.Lines(string(p)) {
				lines++
				_, rest, _ := strings.Cut(l, "|")
				kind, tags, tagged := strings.Cut(strings.TrimSuffix(rest, "\n"), "|#")
				kinds[kind]++
				if tagged != c.tags || tagged && strings.Count(tags, ",") != 2 {
					t.Fatalf("%s: line %q", c.name, l)
				}
			}
		}
		if lines != 1000 || kinds["c"] != 600 || kinds["ms"] != 300 || kinds["g"] != 100 {
			t.Errorf("%s: %d lines, %v", c.name, lines, kinds)
		}
	}
}

// TestNothingIsLostOnReliableTransports sends to real receivers.
func TestNothingIsLostOnReliableTransports(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles a program")
	}
	program := build(t)
	dir := t.TempDir()
	for _, c := range cases(dir) {
		if strings.Contains(c.name, "udp") {
			continue
		}
		r, err := measure(program, c, 50*time.Millisecond, 100_000)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if r.sent == 0 || r.accepted != r.sent || r.lost != 0 {
			t.Errorf("%s: sent %d lines, accepted %d", c.name, r.sent, r.accepted)
		}
		if r.user+r.system <= 0 {
			t.Errorf("%s: took %v s of CPU", c.name, r.user+r.system)
		}
	}
}

func TestUnknownCase(t *testing.T) {
	var w bytes.Buffer
	if err := run(&w, "pigeon", time.Millisecond, 1, 1); err == nil || !strings.Contains(err.Error(), "pigeon") {
		t.Errorf("error %v, want one that names the case", err)
	}
}

func build(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "load")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}
