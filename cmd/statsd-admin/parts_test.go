package main

import (
	"archive/zip"
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/bootstrap"
	"github.com/statsd-admin/statsd-admin/statsd/report"
)

func TestUnicodeLocale(t *testing.T) {
	for env, want := range map[string]bool{"": false, "LANG=C": false, "LANG=en_US.UTF-8": true, "LANG=de_DE.utf8": true, "LC_ALL=C LANG=C.UTF-8": false, "LC_ALL=C.UTF-8 LANG=C": true,
		"LC_CTYPE=C.UTF-8 LANG=C": true, "LC_CTYPE=C LANG=C.UTF-8": false, "LANG=UTF-8.x": false, "LC_ALL= LANG=x.UTF-8": true} {
		got := unicodeLocale(func(name string) string {
			for _, pair := range strings.Fields(env) {
				if value, ok := strings.CutPrefix(pair, name+"="); ok {
					return value
				}
			}
			return ""
		})
		if got != want {
			t.Errorf("%s: %v", env, got)
		}
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
		"         4  a\n":                               good,
		"         4  a  (truncated)\n":                  archive(t, "a", "text", "manifest.json", entry(4, `,"truncated":true,"error":"x"`)),
		"         4  a  (no\\nway)\n":                   archive(t, "a", "text", "manifest.json", entry(4, `,"error":"no\nway"`)),
		"a: its checksum differs from the manifest's":   archive(t, "a", "text", "manifest.json", entry(3, "")),
		"a: its checksum differs from the manifest's#":  archive(t, "a", "texu", "manifest.json", entry(4, "")),
		"a: its checksum differs from the manifest's##": archive(t, "a", "text", "manifest.json", entry(5, "")),
		"open manifest.json: file does not exist":       archive(t, "a", "text"),
		"a: open a: file does not exist":                archive(t, "manifest.json", entry(4, "")),
		"manifest.json: EOF":                            archive(t, "manifest.json", ""),
		"zip: not a valid zip file":                     nil,
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

// TestClientErrors expects one line for an answer without a body, and for files that
// hold no certificates.
func TestClientErrors(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(503) }))
	defer s.Close()
	if status, _, stderr := invoke(nil, "get", "--address", s.URL, "/x"); status != 1 || !strings.Contains(stderr, "503 Service Unavailable\n") {
		t.Errorf("%d %q", status, stderr)
	}
	text := write(t, "text", "text")
	for want, args := range map[string][]string{
		"error: stat /none: no such file or directory\n":                 {"--ca", "/none"},
		"error: " + text + " has no certificate in PEM form\n":           {"--ca", text},
		"error: open /none: no such file or directory\n":                 {"--cert", "/none", "--key", text},
		"error: tls: failed to find any PEM data in certificate input\n": {"--cert", text, "--key", text},
	} {
		if status, _, stderr := invoke(nil, append([]string{"get", "--address", "https://127.0.0.1:1", "/"}, args...)...); status != 1 || stderr != want {
			t.Errorf("%q: %d %q, want %q", args, status, stderr, want)
		}
	}
}

// TestExplainedSamples expects what drops a sample, or the limit that holds it back.
func TestExplainedSamples(t *testing.T) {
	for want, s := range map[string]report.Sample{
		"  dropped:       by the mapping rules": {Dropped: true, Stat: "x"},
		"  dropped:       by filters.metrics":   {Dropped: true, Filter: "metrics"},
		"  over limit:    series":               {Limit: "series", Stat: "x", Series: "x{}"},
		"  series:        x{}\n":                {Stat: "x", Series: "x{}"},
	} {
		var b bytes.Buffer
		e := &explainer{out: bufio.NewWriter(&b)}
		e.sample(&s)
		_ = e.out.Flush()
		if got := b.String(); !strings.Contains(got, strings.TrimSpace(want)) || strings.Contains(got, "over limit") != (s.Limit != "") || strings.Contains(got, "stat:") == s.Dropped {
			t.Errorf("%q lacks %q", got, want)
		}
	}
}

// TestInitOnlyEnds expects a daemon that only initializes to end by itself, and errors to
// prevent the start.
func TestInitOnlyEnds(t *testing.T) {
	dir := t.TempDir()
	d, _ := instanceOf(t, dir, []string{"--mode", "init_only", "--config-yaml", "admin: {" + onLoopback + "}"})
	if err := d.Run(context.Background()); err != nil {
		t.Error(err)
	}
	for text, want := range map[string][2]string{
		"stats_config: {stats_tags: [{tag_name: shoe_size}]}": {filepath.Join(dir, "log"), "stats_config.stats_tags: "},
		"node: {id: a}": {filepath.Join(dir, "none", "log"), "no such file or directory"},
	} {
		o, _, err := parseOptions([]string{"--config-yaml", text, "--log-path", want[0]}, 1)
		if err != nil {
			t.Fatal(err)
		}
		c, err := bootstrap.Load(bootstrap.Source{YAML: text}, bootstrap.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := newInstance(o, c, nil); err == nil || !strings.Contains(err.Error(), want[1]) {
			t.Errorf("%s: %v", text, err)
		}
		if err := check(o, c, io.Discard); err == nil || !strings.Contains(err.Error(), want[1]) {
			t.Errorf("check %s: %v", text, err)
		}
	}
	if _, err := newInstance(new(Options), mustLoad(t), []passedSocket{{name: "x"}}); err == nil {
		t.Error("a socket that nothing uses")
	}
}

func mustLoad(t *testing.T) *bootstrap.Config {
	t.Helper()
	c, err := bootstrap.Load(bootstrap.Source{YAML: "node: {id: a}"}, bootstrap.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestPrepare expects the number of threads that the options ask for.
func TestPrepare(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(before)
	o := &Options{ConcurrencySet: true}
	o.Concurrency = 1
	if w := prepare(o); w != "" || runtime.GOMAXPROCS(0) != 1 {
		t.Errorf("%d threads, %q", runtime.GOMAXPROCS(0), w)
	}
}
