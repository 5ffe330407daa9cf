package logfile

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestLimits: what fits exactly is kept and waits, one byte more does not.
func TestLimits(t *testing.T) {
	for _, tt := range []struct {
		name           string
		opts           Options
		fits, triggers int // bytes: that fit in the buffer, that wake Run
	}{
		{"set", Options{FlushBytes: 100, MaxBytes: 300}, 300, 100},
		{"default", Options{FlushBytes: 1 << 17}, 2 << 20, 1 << 17},
		{"least", Options{FlushBytes: 100}, 1 << 20, 100},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := open(t, filepath.Join(t.TempDir(), "a.log"), tt.opts)
			defer f.Close()
			line := func(n int) []byte { return append(bytes.Repeat([]byte("x"), n-1), '\n') }
			write := func(n int) {
				if wrote, err := f.Write(line(n)); wrote != n || err != nil {
					t.Errorf("%d bytes: %d, %v", n, wrote, err)
				}
			}
			write(tt.triggers - 1)
			if len(f.full) != 0 {
				t.Errorf("%d bytes are enough to write", tt.triggers-1)
			}
			write(1)
			if len(f.full) != 1 {
				t.Errorf("%d bytes are not enough to write", tt.triggers)
			}
			write(tt.fits - tt.triggers)
			if f.Dropped() != 0 {
				t.Errorf("%d bytes do not fit", tt.fits)
			}
			write(1)
			if f.Dropped() != 1 {
				t.Errorf("%d lines dropped, want the one after %d bytes", f.Dropped(), tt.fits)
			}
		})
	}
}

func TestDefaultInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "a.log")
		f := open(t, path, Options{FlushBytes: 100})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- f.Run(ctx) }()
		if _, err := f.Write([]byte("a\n")); err != nil {
			t.Error(err)
		}
		for _, at := range []struct {
			sleep time.Duration
			want  string
		}{{10*time.Second - 1, ""}, {1, "a\n"}} {
			time.Sleep(at.sleep)
			synctest.Wait()
			if got := read(t, path); got != at.want {
				t.Errorf("after another %v: %q, want %q", at.sleep, got, at.want)
			}
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestCutLengths cuts lines at, above and far below their length, also within a
// character and below the length of the mark.
func TestCutLengths(t *testing.T) {
	for _, tt := range []struct {
		line  string
		limit int
		want  string
	}{
		{"abcdef", 6, "abcdef"}, {"abcdef", 5, "ab…"}, {"abcdef", 4, "a…"}, {"abcdef", 3, "…"}, {"abcdef", 0, "…"},
		{"aébcd", 6, "aébcd"}, {"aéébcd", 6, "aé…"}, {"aéébcd", 5, "a…"}, {"", 0, ""},
		{"\x80\x80\x80\x80\x80\x80", 5, "…"}, // no character begins
	} {
		if got := string(Cut([]byte(tt.line), tt.limit)); got != tt.want {
			t.Errorf("%q cut to %d: %q, want %q", tt.line, tt.limit, got, tt.want)
		}
	}
}

// TestFirstAndLastEscapes checks the ends of every range of escaped characters and
// their neighbors.
func TestFirstAndLastEscapes(t *testing.T) {
	for _, r := range []struct{ first, last rune }{
		{0, 0x1f}, {0x7f, 0x9f}, {0x61c, 0x61c}, {0x200e, 0x200f}, {0x2028, 0x202e}, {0x2066, 0x2069}, {0xfeff, 0xfeff},
	} {
		for c := r.first - 1; c <= r.last+1; c++ {
			if c < 0 {
				continue
			}
			escaped := strings.HasPrefix(string(AppendEscaped(nil, string(c))), `\`)
			if want := c >= r.first && c <= r.last; escaped != want {
				t.Errorf("%U escaped: %v, want %v", c, escaped, want)
			}
		}
	}
}
