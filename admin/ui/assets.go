// Package ui holds what the pages of the administration server are made of:
// templates, and assets that are served under names with a hash of their
// content, so that a browser may keep them for ever.
package ui

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"io/fs"
	"path"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

//go:embed assets templates
var files embed.FS

// Prefix is what the paths of all assets begin with.
const Prefix = "/ui/assets/"

// Asset is one file. Its bytes must not be changed.
type Asset struct {
	Path        string // as requested
	ContentType string
	Raw         []byte
	Gzip, Zstd  []byte // nil where that is not smaller
}

// Assets is the files by path and by name. It is immutable.
type Assets struct {
	byPath map[string]*Asset
	byName map[string]*Asset
}

// Load compresses and hashes the assets.
func Load() (*Assets, error) {
	a := &Assets{make(map[string]*Asset), make(map[string]*Asset)}
	entries, err := fs.ReadDir(files, "assets")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		asset, err := load(e.Name())
		if err != nil {
			return nil, err
		}
		a.byName[e.Name()] = asset
		a.byPath[asset.Path] = asset
	}
	return a, nil
}

func load(name string) (*Asset, error) {
	types := map[string]string{".css": "text/css; charset=UTF-8", ".js": "text/javascript; charset=UTF-8", ".svg": "image/svg+xml"}
	contentType := types[path.Ext(name)]
	if contentType == "" {
		return nil, fmt.Errorf("ui: asset %q has no known content type", name)
	}
	raw, err := files.ReadFile("assets/" + name)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(raw)
	a := &Asset{Path: Prefix + hex.EncodeToString(sum[:8]) + "/" + name, ContentType: contentType, Raw: raw}
	var b bytes.Buffer
	zip, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := zip.Write(raw); err != nil {
		return nil, err
	}
	if err := zip.Close(); err != nil {
		return nil, err
	}
	a.Gzip = smaller(b.Bytes(), raw)
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBetterCompression), zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(64<<10), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return nil, err
	}
	a.Zstd = smaller(enc.EncodeAll(raw, nil), raw)
	return a, enc.Close()
}

func smaller(packed, raw []byte) []byte {
	if len(packed) < len(raw) {
		return packed
	}
	return nil
}

// Find returns the asset of a request path, nil if there is none.
func (a *Assets) Find(path string) *Asset { return a.byPath[path] }

// Path returns the request path of the asset called name, "" if there is none.
func (a *Assets) Path(name string) string {
	if asset := a.byName[name]; asset != nil {
		return asset.Path
	}
	return ""
}

// Template returns the page template called name. In it, asset gives the path
// of an asset relative to the root of the server.
func (a *Assets) Template(name string) (*template.Template, error) {
	t := template.New(name).Funcs(template.FuncMap{"asset": func(name string) (string, error) {
		if p := a.Path(name); p != "" {
			return p[1:], nil
		}
		return "", fmt.Errorf("ui: no asset %q", name)
	}})
	return t.ParseFS(files, "templates/"+name)
}
