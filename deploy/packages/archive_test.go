package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestArchives reads the archives back, and writes them twice.
func TestArchives(t *testing.T) {
	files := []file{{name: "statsd-admin", mode: 0o755, data: []byte("program")}, {name: "deploy/rules.yaml", mode: 0o644, data: []byte("rules")}}

	for name, read := range map[string]func(*testing.T, []byte) map[string]string{
		"statsd-admin_0.1.0_linux_amd64.tar.gz": readTar,
		"statsd-admin_0.1.0_windows_amd64.zip":  readZip,
	} {
		base := strings.TrimSuffix(strings.TrimSuffix(name, ".tar.gz"), ".zip")
		want := map[string]string{base + "/statsd-admin": "-rwxr-xr-x program", base + "/deploy/rules.yaml": "-rw-r--r-- rules"}
		var texts [2][]byte
		for i := range texts {
			r := &release{out: t.TempDir(), version: "v0.1.0", time: time.Unix(1763829137, 0).UTC()}
			system, arch, _ := strings.Cut(strings.TrimPrefix(base, "statsd-admin_0.1.0_"), "_")
			if err := r.archive(target{system, arch}, files); err != nil {
				t.Fatal(err)
			}
			var err error
			if texts[i], err = os.ReadFile(filepath.Join(r.out, name)); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(texts[0], texts[1]) {
			t.Errorf("%s: not the same bytes twice", name)
		}
		if got := read(t, texts[0]); !maps.Equal(got, want) {
			t.Errorf("%s has %q, want %q", name, got, want)
		}
	}
}

func readTar(t *testing.T, text []byte) map[string]string {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]string)
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		all[h.Name] = h.FileInfo().Mode().String() + " " + string(data)
	}
}

func readZip(t *testing.T, text []byte) map[string]string {
	t.Helper()
	r, err := zip.NewReader(bytes.NewReader(text), int64(len(text)))
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]string)
	for _, f := range r.File {
		in, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		all[f.Name] = f.Mode().String() + " " + string(data)
	}
	return all
}

// TestAuthorities parses the certificates of the image.
func TestAuthorities(t *testing.T) {
	n := 0
	for rest := authorities(); len(rest) > 0; n++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			t.Fatalf("%d bytes are no certificate", len(rest))
		}
		if c, err := x509.ParseCertificate(block.Bytes); err != nil || !c.IsCA {
			t.Errorf("%v", err)
		}
	}
	if n < 100 {
		t.Errorf("%d certificates", n)
	}
}
