package main

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
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

// TestDamagedBundleIsNotKept expects an error for an answer that is no archive, and no
// file.
func TestDamagedBundleIsNotKept(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/zip")
		_, _ = io.WriteString(w, "PK")
	}))
	defer srv.Close()
	t.Chdir(t.TempDir())
	status, stdout, stderr := invoke(nil, "bundle", "--address", srv.URL, "named.zip")
	if status != 1 || stdout != "" || !strings.HasPrefix(stderr, "error: the archive is damaged: ") {
		t.Errorf("status %d, %q, %q", status, stdout, stderr)
	}
	if left, _ := os.ReadDir("."); len(left) != 0 {
		t.Errorf("%v was left", left)
	}
}

// archive returns a ZIP archive of files, given by name and content in turn.
func archive(t *testing.T, files ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for i := 0; i < len(files); i += 2 {
		f, err := w.Create(files[i])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(f, files[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestManifestIsChecked compares archives with their manifests, and downloads archives
// with and without a name.
func TestManifestIsChecked(t *testing.T) {
	sum := sha256.Sum256([]byte("text"))
	entry := func(bytes int, more string) string {
		return fmt.Sprintf(`{"files":[{"name":"a","bytes":%d,"sha256":"%s"%s}]}`, bytes, hex.EncodeToString(sum[:]), more)
	}
	good := archive(t, "a", "text", "manifest.json", entry(4, ""))
	for want, b := range map[string][]byte{
		"         4  a\n":                                     good,
		"         4  a  (truncated)\n":                        archive(t, "a", "text", "manifest.json", entry(4, `,"truncated":true,"error":"x"`)),
		"         4  a  (no\\nway)\n":                         archive(t, "a", "text", "manifest.json", entry(4, `,"error":"no\nway"`)),
		"a: its checksum differs from that in the manifest":   archive(t, "a", "text", "manifest.json", entry(3, "")),
		"a: its checksum differs from that in the manifest#":  archive(t, "a", "texu", "manifest.json", entry(4, "")),
		"a: its checksum differs from that in the manifest##": archive(t, "a", "text", "manifest.json", entry(5, "")),
		"open manifest.json: file does not exist":             archive(t, "a", "text"),
		"a: open a: file does not exist":                      archive(t, "manifest.json", entry(4, "")),
		"manifest.json: EOF":                                  archive(t, "manifest.json", ""),
		"zip: not a valid zip file":                           nil,
	} {
		list, err := checkBundle(bytes.NewReader(b), int64(len(b)))
		got := list
		if err != nil {
			got = err.Error()
		}
		if want = strings.TrimRight(want, "#"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	t.Chdir(t.TempDir())
	for header, name := range map[string]string{"": "bundle.zip", `attachment; filename="x/../y.zip"`: "y.zip", `attachment; filename=".bashrc"`: "bundle.zip"} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if header != "" {
				w.Header().Set("Content-Disposition", header)
			}
			_, _ = w.Write(good)
		}))
		if status, stdout, stderr := invoke(nil, "bundle", "--address", s.URL); status != 0 || !strings.HasPrefix(stdout, fmt.Sprintf("%s: %d bytes\n", name, len(good))) {
			t.Errorf("%s: %d %q %q", header, status, stdout, stderr)
		}
		if status, _, stderr := invoke(nil, "bundle", "--address", s.URL); status != 1 || !strings.Contains(stderr, "exists") {
			t.Errorf("%s exists: %d %q", name, status, stderr)
		}
		if info, err := os.Stat(name); err != nil || info.Size() != int64(len(good)) {
			t.Errorf("%s: %v", name, err)
		}
		_ = os.Remove(name)
		s.Close()
		if status, _, stderr := invoke(nil, "bundle", "--address", s.URL, "gone.zip"); status != 1 || !strings.HasPrefix(stderr, "error: ") {
			t.Errorf("without a server: %d %q", status, stderr)
		}
	}
	cut := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "1000")
		_, _ = w.Write(good)
	}))
	defer cut.Close()
	if status, _, stderr := invoke(nil, "bundle", "--address", cut.URL, "cut.zip"); status != 1 || !strings.Contains(stderr, "unexpected EOF") {
		t.Errorf("a short answer: %d %q", status, stderr)
	}
	if left, _ := os.ReadDir("."); len(left) != 0 {
		t.Errorf("%v was left", left)
	}
}
