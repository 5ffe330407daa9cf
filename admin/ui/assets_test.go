package ui

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"regexp"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

func TestAssets(t *testing.T) {
	a := Load()
	entries, err := fs.ReadDir(files, "assets")
	if err != nil || len(entries) == 0 {
		t.Fatalf("%d assets, %v", len(entries), err)
	}
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	defer dec.Close()
	for _, e := range entries {
		path := a.Path(e.Name())
		asset := a.Find(path)
		if asset == nil || !regexp.MustCompile(`^/ui/assets/[0-9a-f]{16}/`+regexp.QuoteMeta(e.Name())+`$`).MatchString(path) {
			t.Fatalf("%s has path %q", e.Name(), path)
		}
		if asset.ContentType == "" {
			t.Errorf("%s has no content type", path)
		}
		zip, err := gzip.NewReader(bytes.NewReader(asset.Gzip()))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(zip); err != nil || !bytes.Equal(got, asset.Raw) {
			t.Errorf("%s: gzip gives %d bytes, %v", path, len(got), err)
		}
		if got, err := dec.DecodeAll(asset.Zstd(), nil); err != nil || !bytes.Equal(got, asset.Raw) {
			t.Errorf("%s: zstd gives %d bytes, %v", path, len(got), err)
		}
		for _, other := range []string{path + "/", path[:len(path)-1], strings.Replace(path, "/ui/assets/", "/ui/assets/0", 1), Prefix + e.Name()} {
			if a.Find(other) != nil {
				t.Errorf("%s is found", other)
			}
		}
	}
	if a.Path("none.css") != "" {
		t.Error("an asset that does not exist has a path")
	}
}

// budget bounds the assets in bytes, by name; the rest are modules of single pages.
var budget = map[string]int{"admin.css": 20 << 10, "admin.js": 24 << 10, "theme.js": 1 << 10, "icon.svg": 1 << 10}

const (
	pageBudget = 16 << 10 // of a module for a single page
	loadBudget = 40 << 10 // of all assets, compressed
)

// TestManifest expects every asset to have the SHA-256 of its content in the path, as
// browsers keep it forever, and the sizes to stay within the budget.
func TestManifest(t *testing.T) {
	a := Load()
	load := 0
	for name, asset := range a.byName {
		sum := sha256.Sum256(asset.Raw)
		if !strings.HasPrefix(asset.Path, Prefix+hex.EncodeToString(sum[:8])+"/") {
			t.Errorf("%s has the path %s", name, asset.Path)
		}
		if most := cmp.Or(budget[name], pageBudget); len(asset.Raw) > most {
			t.Errorf("%s has %d bytes, at most %d are allowed", name, len(asset.Raw), most)
		}
		load += min(len(asset.Raw), len(asset.Gzip()))
	}
	if load > loadBudget {
		t.Errorf("all assets have %d bytes compressed, at most %d are allowed", load, loadBudget)
	}
}

// TestPagesKeepThePolicy searches for content forbidden by the pages' content
// security policy, and for ways to insert text as markup.
func TestPagesKeepThePolicy(t *testing.T) {
	forbidden := regexp.MustCompile(`(?i)<style|\sstyle\s*=|\son[a-z]+\s*=|javascript:|innerHTML|outerHTML|insertAdjacentHTML|` +
		`document\.write|\beval\(|new Function|https?://|template\.HTML|<script(?:[^>]*)>[^<]`)
	err := fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := files.ReadFile(path)
		if err != nil {
			return err
		}
		b = bytes.ReplaceAll(b, []byte(`xmlns="http://www.w3.org/2000/svg"`), nil) // a name, not a place
		if found := forbidden.Find(b); found != nil {
			t.Errorf("%s has %q", path, found)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
