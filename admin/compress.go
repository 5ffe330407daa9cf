package admin

import (
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// compressor is the common interface of the encoders.
type compressor interface {
	io.WriteCloser
	Flush() error
	Reset(io.Writer)
}

// compressors is a pool of a limited number of encoders.
type compressors struct {
	slots chan struct{}
	gzip  sync.Pool
	zstd  sync.Pool
}

func newCompressors(n int) *compressors {
	c := &compressors{slots: make(chan struct{}, max(n, 0))}
	c.gzip.New = func() any {
		w, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // the level is a valid one
		return w
	}
	c.zstd.New = func() any {
		w, _ := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), // the options are valid ones
			zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(256<<10), zstd.WithLowerEncoderMem(true))
		return w
	}
	return c
}

func (c *compressors) pool(encoding string) *sync.Pool {
	if encoding == "zstd" {
		return &c.zstd
	}
	return &c.gzip
}

// take returns an encoder that writes to w, or nil if all are in use.
func (c *compressors) take(encoding string, w io.Writer) compressor {
	select {
	case c.slots <- struct{}{}:
	default:
		return nil
	}
	enc := c.pool(encoding).Get().(compressor)
	enc.Reset(w)
	return enc
}

// give returns an encoder to the pool.
func (c *compressors) give(encoding string, enc compressor) {
	enc.Reset(nil)
	c.pool(encoding).Put(enc)
	<-c.slots
}

// chooseEncoding returns the encoding of a response for the given Accept-Encoding
// values, "" for none: the one with the highest weight, preferring zstd over gzip and
// both over identity.
func chooseEncoding(accept []string) string {
	best, bestWeight, plain := "", 0.0, 0.0
	for _, value := range accept {
		for item := range strings.SplitSeq(value, ",") {
			name, parameters, _ := strings.Cut(item, ";")
			name = strings.ToLower(strings.Trim(name, " \t"))
			weight, ok := parseWeight(parameters)
			switch better := weight > bestWeight || weight == bestWeight && weight > 0 && name == "zstd"; {
			case !ok:
			case name == "identity":
				plain = weight
			case better && (name == "gzip" || name == "zstd"):
				best, bestWeight = name, weight
			}
		}
	}
	if plain > bestWeight {
		return ""
	}
	return best
}

// parseWeight parses "q=0.5". An empty weight is 1.
func parseWeight(parameters string) (float64, bool) {
	parameters = strings.Trim(parameters, " \t")
	if parameters == "" {
		return 1, true
	}
	name, value, _ := strings.Cut(parameters, "=")
	q, err := strconv.ParseFloat(value, 64)
	return q, strings.EqualFold(strings.Trim(name, " \t"), "q") && err == nil && q >= 0 && q <= 1
}

// compressible reports whether responses of a content type are worth compressing.
func compressible(contentType string) bool {
	return strings.HasPrefix(contentType, "text/") && contentType != typeEvents ||
		strings.HasPrefix(contentType, "application/json") ||
		strings.HasPrefix(contentType, "application/openmetrics-text")
}
