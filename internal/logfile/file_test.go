package logfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
	"unicode"
	"unicode/utf8"
)

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func open(t *testing.T, path string, opts Options) *File {
	t.Helper()
	f, err := Open(path, opts)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestReopenAfterRotation(t *testing.T) {
	for _, flush := range []int{0, 1 << 20} {
		path := filepath.Join(t.TempDir(), "a.log")
		f := open(t, path, Options{FlushBytes: flush})
		fmt.Fprintln(f, "before")
		if err := os.Rename(path, path+".1"); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(f, "still the old file")
		if err := f.Reopen(); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(f, "after")
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if got := read(t, path+".1"); got != "before\nstill the old file\n" {
			t.Errorf("old file %q", got)
		}
		if got := read(t, path); got != "after\n" {
			t.Errorf("new file %q", got)
		}
	}
}

func TestFailedReopenKeepsTheFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "a.log")
	f := open(t, path, Options{})
	moved := dir + ".moved"
	if err := os.Rename(dir, moved); err != nil {
		t.Fatal(err)
	}
	if err := f.Reopen(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("err = %v", err)
	}
	fmt.Fprintln(f, "kept")
	if got := read(t, filepath.Join(moved, "a.log")); got != "kept\n" {
		t.Errorf("content %q", got)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Reopen(); !errors.Is(err, ErrClosed) {
		t.Errorf("Reopen after Close: %v", err)
	}
	if _, err := f.Write([]byte("x\n")); !errors.Is(err, ErrClosed) {
		t.Errorf("Write after Close: %v", err)
	}
	if err := f.Close(); !errors.Is(err, ErrClosed) {
		t.Errorf("second Close: %v", err)
	}
}

func TestBufferFlushesByTimeAndSize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "a.log")
		f := open(t, path, Options{FlushBytes: 100, FlushInterval: time.Minute})
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error)
		go func() { done <- f.Run(ctx) }()
		fmt.Fprintln(f, "small")
		synctest.Wait()
		if got := read(t, path); got != "" {
			t.Errorf("written too early: %q", got)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := read(t, path); got != "small\n" {
			t.Errorf("after the interval: %q", got)
		}
		big := strings.Repeat("x", 120) + "\n"
		fmt.Fprint(f, big)
		synctest.Wait()
		if got := read(t, path); got != "small\n"+big {
			t.Errorf("after %d bytes: %q", len(big), got)
		}
		fmt.Fprintln(f, "last")
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if got := read(t, path); !strings.HasSuffix(got, "last\n") {
			t.Errorf("after the end: %q", got)
		}
	})
}

func TestBufferIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.log")
	f := open(t, path, Options{FlushBytes: 10, MaxBytes: 25})
	for range 5 {
		if n, err := f.Write([]byte("123456789\n")); n != 10 || err != nil {
			t.Fatal(n, err)
		}
	}
	if f.Dropped() != 3 {
		t.Errorf("dropped %d, want 3", f.Dropped())
	}
	if err := f.Flush(); err != nil {
		t.Fatal(err)
	}
	if got := read(t, path); got != "123456789\n123456789\n" {
		t.Errorf("content %q", got)
	}
}

func TestFailuresAreCounted(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("no /dev/full")
	}
	f := open(t, "/dev/full", Options{})
	if _, err := f.Write([]byte("x\n")); !errors.Is(err, syscall.ENOSPC) || f.Failed() != 1 {
		t.Errorf("err %v, failed %d", err, f.Failed())
	}
	buffered := open(t, "/dev/full", Options{FlushBytes: 1 << 10})
	for range 3 {
		if _, err := buffered.Write([]byte("x\n")); err != nil {
			t.Error(err)
		}
	}
	if err := buffered.Flush(); !errors.Is(err, syscall.ENOSPC) || buffered.Failed() != 3 {
		t.Errorf("buffered: err %v, failed %d, want 3 lines", err, buffered.Failed())
	}
}

// TestNoLineIsLostOrTorn writes from many goroutines while the file is rotated
// and reopened.
func TestNoLineIsLostOrTorn(t *testing.T) {
	for _, flush := range []int{0, 1 << 10} {
		dir := t.TempDir()
		path := filepath.Join(dir, "a.log")
		f := open(t, path, Options{FlushBytes: flush, MaxBytes: 64 << 20})
		ctx, cancel := context.WithCancel(context.Background())
		var flusher, writers sync.WaitGroup
		flusher.Go(func() { _ = f.Run(ctx) })
		const perWriter = 500
		for w := range 8 {
			writers.Go(func() {
				for i := range perWriter {
					fmt.Fprintf(f, "%d-%d %s\n", w, i, strings.Repeat("y", i%50))
				}
			})
		}
		for i := range 5 {
			if err := os.Rename(path, fmt.Sprintf("%s.%d", path, i)); err != nil {
				t.Fatal(err)
			}
			if err := f.Reopen(); err != nil {
				t.Fatal(err)
			}
		}
		writers.Wait()
		cancel()
		flusher.Wait()
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		files, err := filepath.Glob(path + "*")
		if err != nil {
			t.Fatal(err)
		}
		seen := make(map[string]bool)
		for _, name := range files {
			for line := range strings.Lines(read(t, name)) {
				var w, i int
				if _, err := fmt.Sscanf(line, "%d-%d", &w, &i); err != nil || strings.Count(line, "y") != i%50 {
					t.Fatalf("torn line %q", line)
				}
				seen[fmt.Sprint(w, i)] = true
			}
		}
		if len(seen) != 8*perWriter {
			t.Errorf("%d lines, want %d", len(seen), 8*perWriter)
		}
	}
}

// TestAllThatDeceives: control characters, direction marks and everything else that
// changes how a line displays are escaped, and their neighbors stay.
func TestAllThatDeceives(t *testing.T) {
	for r := range rune(0x10000) {
		if r >= 0xd800 && r <= 0xdfff {
			continue // no characters
		}
		want := string(r)
		switch {
		case r < 0x20 || r == 0x7f:
			want = fmt.Sprintf(`\x%02x`, r)
		case unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == 0x2028 || r == 0x2029 || r == 0xfeff:
			want = fmt.Sprintf(`\u%04x`, r)
		}
		if got := string(AppendEscaped(nil, string(r))); got != want {
			t.Errorf("%U is written as %q, want %q", r, got, want)
		}
	}
}

func TestEscapes(t *testing.T) {
	tests := []struct{ text, escaped, quoted string }{
		{"plain text", "plain text", `"plain text"`},
		{"a\nb\r\tc", `a\x0ab\x0d\x09c`, `"a\x0ab\x0d\x09c"`},
		{"\x1b[31mred", `\x1b[31mred`, `"\x1b[31mred"`},
		{"bad \xff\xc3", `bad \xff\xc3`, `"bad \xff\xc3"`},
		{"ünï ✓", "ünï ✓", `"ünï ✓"`},
		{"\u202egnp.exe\u2066", `\u202egnp.exe\u2066`, `"\u202egnp.exe\u2066"`},
		{"\u0085\u2028\ufeff", `\u0085\u2028\ufeff`, `"\u0085\u2028\ufeff"`},
		{`say "hi" \o/`, `say "hi" \o/`, `"say \"hi\" \\o/"`},
		{"\x7f\x00", `\x7f\x00`, `"\x7f\x00"`},
	}
	for _, tt := range tests {
		if got := string(AppendEscaped(nil, tt.text)); got != tt.escaped {
			t.Errorf("AppendEscaped(%q) = %s, want %s", tt.text, got, tt.escaped)
		}
		if got := string(AppendQuoted(nil, tt.text)); got != tt.quoted {
			t.Errorf("AppendQuoted(%q) = %s, want %s", tt.text, got, tt.quoted)
		}
	}
}

func TestCut(t *testing.T) {
	short := bytes.Repeat([]byte("a"), MaxLineBytes)
	if got := Cut(short, MaxLineBytes); len(got) != MaxLineBytes {
		t.Errorf("%d bytes", len(got))
	}
	long := bytes.Repeat([]byte("é"), MaxLineBytes)
	if got := Cut(long, MaxLineBytes); len(got) > MaxLineBytes || !utf8.Valid(got) || !bytes.HasSuffix(got, []byte("é…")) {
		t.Errorf("%d bytes ending in %q", len(got), got[len(got)-8:])
	}
}

// FuzzEscape checks that the output is always one printable line of valid UTF-8.
func FuzzEscape(f *testing.F) {
	for _, s := range []string{"", "a\nb", "\xff\"\\", "\u202e", "é"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, got := range []string{string(AppendEscaped(nil, text)), string(AppendQuoted(nil, text))} {
			if !utf8.ValidString(got) {
				t.Fatalf("%q: not UTF-8: %q", text, got)
			}
			for _, r := range got {
				if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
					t.Fatalf("%q: %U left in %q", text, r, got)
				}
			}
		}
	})
}

// fill writes data to a pipe in place of the file of f until the pipe is full. It
// returns the result of Write and a function that reads the pipe after another line.
func fill(t *testing.T, f *File, data []byte) (n int, got func() string) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	for wait := 10 * time.Millisecond; ; wait *= 2 { // nothing passes if it is over before the write
		if err := w.SetWriteDeadline(time.Now().Add(wait)); err != nil {
			t.Fatal(err)
		}
		*f = File{out: w}
		if n, err = f.Write(data); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("%d bytes: %v", n, err)
		}
		if n > 0 || f.torn {
			break
		}
	}
	return n, func() string {
		text := make([]byte, 2<<20)
		n, err := r.Read(text)
		if err == nil {
			err = w.SetWriteDeadline(time.Time{})
		}
		if err == nil {
			_, err = f.Write([]byte("next\n"))
		}
		if err != nil {
			t.Fatal(err)
		}
		w.Close()
		rest, err := io.ReadAll(r)
		if err != nil {
			t.Error(err)
		}
		return string(text[:n]) + string(rest)
	}
}

// TestTornLineGetsAnEnd ends writes in the middle of a line, just before its end, and
// between lines.
func TestTornLineGetsAnEnd(t *testing.T) {
	_, got := fill(t, &File{}, bytes.Repeat([]byte("x"), 1<<20))
	capacity := len(got()) - len("\nnext\n")
	line := strings.Repeat("x", capacity-len("first\n"))
	for _, tt := range []struct {
		data   string
		want   int // bytes of whole lines
		failed uint64
		text   string
	}{
		{"first\n" + line + "yy\n", len("first\n"), 1, "first\n" + line + "\nnext\n"},
		{"first\n" + line + "\n", capacity + 1, 0, "first\n" + line + "\nnext\n"},
		{"first\n" + line[1:] + "\nlast\n", capacity, 1, "first\n" + line[1:] + "\nnext\n"},
	} {
		f := &File{}
		n, got := fill(t, f, []byte(tt.data))
		if n != tt.want || f.Failed() != tt.failed {
			t.Errorf("%d bytes, want %d; %d lines failed, want %d", n, tt.want, f.Failed(), tt.failed)
		}
		if text := got(); text != tt.text {
			t.Errorf("a file of %d bytes, want %d, ends with %q", len(text), len(tt.text), text[max(0, len(text)-20):])
		}
	}
}

// TestTornLineOfAnotherFileGetsAnEnd opens files that another process, or a full disk
// before a reopening, has left with a part of a line.
func TestTornLineOfAnotherFileGetsAnEnd(t *testing.T) {
	for content, want := range map[string]string{"": "b\n", "a\n": "a\nb\n", "a\n{": "a\n{\nb\n"} {
		for _, mode := range []os.FileMode{0o600, 0o200} {
			path := filepath.Join(t.TempDir(), "log")
			if err := os.WriteFile(path, []byte(content), mode); err != nil {
				t.Fatal(err)
			}
			f, err := Open(path, Options{})
			if err == nil {
				err = f.Reopen()
			}
			if err != nil {
				t.Fatal(err)
			}
			_, err = f.Write([]byte("b\n"))
			if err = errors.Join(err, f.Close(), os.Chmod(path, 0o600)); err != nil {
				t.Fatal(err)
			}
			if got, _ := os.ReadFile(path); string(got) != want && (mode == 0o600 || string(got) != content+"b\n") {
				t.Errorf("%q with mode %o became %q, want %q", content, mode, got, want)
			}
		}
	}
}
