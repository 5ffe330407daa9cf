// Package ui holds the assets of the admin server's pages. Their names contain a hash
// of their content, so browsers can cache them forever.
package ui

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"path"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

//go:embed assets
var files embed.FS

// Prefix is the path prefix of all assets.
const Prefix = "/ui/assets/"

// Asset is a file. Its bytes must not be modified.
type Asset struct {
	Path        string // as requested
	ContentType string
	Raw         []byte
	// Gzip and Zstd compress Raw on the first call. They return nil if that does not
	// make it smaller.
	Gzip, Zstd func() []byte
}

// Assets holds the files by path and by name. It is immutable.
type Assets struct {
	byPath map[string]*Asset
	byName map[string]*Asset
}

// Load hashes the assets.
func Load() *Assets {
	a := &Assets{make(map[string]*Asset), make(map[string]*Asset)}
	entries, _ := files.ReadDir("assets") // it is embedded
	for _, e := range entries {
		asset := load(e.Name())
		a.byName[e.Name()] = asset
		a.byPath[asset.Path] = asset
	}
	return a
}

func load(name string) *Asset {
	types := map[string]string{".css": "text/css; charset=UTF-8", ".js": "text/javascript; charset=UTF-8", ".svg": "image/svg+xml"}
	raw, _ := files.ReadFile("assets/" + name) // it is embedded
	sum := sha256.Sum256(raw)
	return &Asset{
		Path: Prefix + hex.EncodeToString(sum[:8]) + "/" + name, ContentType: types[path.Ext(name)], Raw: raw,
		Gzip: sync.OnceValue(func() []byte { return smaller(gzipped(raw), raw) }),
		Zstd: sync.OnceValue(func() []byte { return smaller(zstded(raw), raw) }),
	}
}

func gzipped(raw []byte) []byte {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level is a valid one
	_, _ = w.Write(raw)                                   // a buffer takes all
	_ = w.Close()
	return b.Bytes()
}

func zstded(raw []byte) []byte {
	w, _ := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBetterCompression), zstd.WithEncoderConcurrency(1), // the options are valid ones
		zstd.WithWindowSize(64<<10), zstd.WithLowerEncoderMem(true))
	defer w.Close()
	return w.EncodeAll(raw, nil)
}

func smaller(packed, raw []byte) []byte {
	if len(packed) < len(raw) {
		return packed
	}
	return nil
}

// Find returns the asset for a request path, or nil.
func (a *Assets) Find(path string) *Asset { return a.byPath[path] }

// Path returns the request path of the asset with the given name, or "".
func (a *Assets) Path(name string) string {
	if asset := a.byName[name]; asset != nil {
		return asset.Path
	}
	return ""
}
