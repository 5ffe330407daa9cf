package admin

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// TestCompressionIsFast compares the speed with the encoders' fastest level, since
// scrapes take processor time from the program.
func TestCompressionIsFast(t *testing.T) {
	var text bytes.Buffer
	for i := range 5000 {
		fmt.Fprintf(&text, "cluster.service_%d.upstream_rq_%d: %d\n", i%97, i%31, i*i)
	}
	atLevel := map[string]map[string]func(io.Writer) (io.WriteCloser, error){
		"gzip": {
			"fastest": func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriterLevel(w, gzip.BestSpeed) },
			"default": func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriterLevel(w, gzip.DefaultCompression) },
		},
		"zstd": {
			"fastest": func(w io.Writer) (io.WriteCloser, error) {
				return zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(256<<10), zstd.WithEncoderConcurrency(1))
			},
			"default": func(w io.Writer) (io.WriteCloser, error) {
				return zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithWindowSize(256<<10), zstd.WithEncoderConcurrency(1))
			},
		},
	}
	pack := func(w io.WriteCloser) {
		if _, err := w.Write(text.Bytes()); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for encoding, levels := range atLevel {
		var got bytes.Buffer
		pack(newCompressors(1).take(encoding, &got))
		for level, newWriter := range levels {
			var want bytes.Buffer
			w, err := newWriter(&want)
			if err != nil {
				t.Fatal(err)
			}
			pack(w)
			if same := bytes.Equal(got.Bytes(), want.Bytes()); same != (level == "fastest") {
				t.Errorf("%s: %d bytes, at the %s level %d: the same %v", encoding, got.Len(), level, want.Len(), same)
			}
		}
	}
}
