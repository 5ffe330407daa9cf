package main

import (
	"archive/zip"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestBundle downloads a bundle from a running server, and refuses a damaged one.
func TestBundle(t *testing.T) {
	d := running(t, "admin: {"+onLoopback+"}")
	address := "http://" + d.Admin().Addr().String()
	t.Chdir(t.TempDir())
	status, stdout, stderr := invoke(nil, "bundle", "--address", address, "--cpu", "10ms", "a.zip")
	if status != 0 || stderr != "" {
		t.Fatalf("status %d, %q", status, stderr)
	}
	for _, want := range []string{"a.zip: ", "  stats.txt\n", "  cpu.pprof\n", "  config_dump.json\n"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("the output lacks %q:\n%s", want, stdout)
		}
	}
	if info, err := os.Stat("a.zip"); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	status, _, stderr = invoke(nil, "bundle", "--address", address, "a.zip")
	if status != 1 || !strings.Contains(stderr, "a.zip") || !strings.Contains(stderr, "exists") {
		t.Errorf("a file that exists: status %d, %q", status, stderr)
	}
	if status, _, stderr = invoke(nil, "bundle", "--address", address); status != 0 {
		t.Errorf("without a name: status %d, %q", status, stderr)
	}
	if found, _ := filepath.Glob("proxy-bundle-*Z.zip"); len(found) != 1 {
		t.Errorf("without a name there are %v", found)
	}

	whole, err := os.ReadFile("a.zip")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := checkBundle(bytes.NewReader(whole[:len(whole)/2]), int64(len(whole)/2)); err == nil {
		t.Error("half an archive was accepted")
	}
	archive, err := zip.NewReader(bytes.NewReader(whole), int64(len(whole)))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range archive.File {
		start, err := f.DataOffset()
		if err != nil {
			t.Fatal(err)
		}
		damaged := bytes.Clone(whole)
		damaged[start+int64(f.CompressedSize64)/2] ^= 0x5a
		if _, err := checkBundle(bytes.NewReader(damaged), int64(len(damaged))); err == nil && f.Name != "SHA256SUMS" {
			t.Errorf("a damage of %s was not found", f.Name)
		}
	}
}

func TestBundleReportsFailures(t *testing.T) {
	d := running(t, "admin: {"+onLoopback+", mode: read_only}")
	t.Chdir(t.TempDir())
	for _, args := range [][]string{nil, {"named.zip"}} {
		status, _, stderr := invoke(nil, append([]string{"bundle", "--address", "http://" + d.Admin().Addr().String()}, args...)...)
		if status != 1 || !strings.HasPrefix(stderr, "error: POST /bundle: 403 ") {
			t.Errorf("%q: status %d, %q", args, status, stderr)
		}
		if left, _ := os.ReadDir("."); len(left) != 0 {
			t.Errorf("%q: %v was left", args, left)
		}
	}
}
