package logctl

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/statsd-admin/statsd-admin/internal/logfile"
)

func mustNew(t *testing.T, cfg Config) (*Registry, *bytes.Buffer) {
	t.Helper()
	var out bytes.Buffer
	cfg.Output = &out
	r, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r, &out
}

// levels prints the list on one line.
func levels(r *Registry) string {
	var rows []string
	for _, l := range r.List() {
		rows = append(rows, l.Name+":"+l.Level.String())
	}
	return strings.Join(rows, " ")
}

func TestLevelNames(t *testing.T) {
	if got := strings.Join(Levels(), " "); got != "trace debug info warning error critical off" {
		t.Errorf("levels %s", got)
	}
	for i, name := range Levels() {
		l, ok := ParseLevel(name)
		if !ok || l != Trace+Level(i) || l.String() != name {
			t.Errorf("ParseLevel(%s) = %v, %v", name, l, ok)
		}
		if l < Off && levelOf(l.Slog()) != l {
			t.Errorf("%s does not survive slog", name)
		}
	}
	for _, name := range []string{"warn", "Info", "", "fatal"} {
		if l, ok := ParseLevel(name); ok {
			t.Errorf("ParseLevel(%q) = %v", name, l)
		}
	}
	if (Trace-1).String() != "unknown" || (Off+1).String() != "unknown" {
		t.Error("name of a wrong level")
	}
}

// TestLoggersStartAtInfo: the zero Config writes what a program wants to see by default.
func TestLoggersStartAtInfo(t *testing.T) {
	r, out := mustNew(t, Config{Names: []string{"a"}, Format: "%l %v"})
	for range 2 {
		r.Logger("a").Debug("hidden")
		r.Logger("b").Debug("hidden")
		r.Logger("a").Info("shown")
	}
	if got := out.String(); got != "info shown\ninfo shown\n" {
		t.Errorf("got %q", got)
	}
}

func TestLevelsDecideWhatIsWritten(t *testing.T) {
	r, out := mustNew(t, Config{Names: []string{"a"}, Format: "%l %v"})
	log := r.Logger("a")
	all := []Level{Trace, Debug, Info, Warning, Error, Critical}
	for _, level := range append(all, Off) {
		if err := r.Set("a", level.String()); err != nil {
			t.Fatal(err)
		}
		out.Reset()
		var want strings.Builder
		for _, l := range all {
			log.Log(context.Background(), l.Slog(), "m")
			if l >= level {
				want.WriteString(l.String() + " m\n")
			}
		}
		if diff := cmp.Diff(want.String(), out.String()); diff != "" {
			t.Errorf("at %v (-want +got)\n%s", level, diff)
		}
	}
}

// TestComponentsAreNoFiles checks that in named mode the level of the component
// applies, and that source files that log are not listed.
func TestComponentsAreNoFiles(t *testing.T) {
	r, out := mustNew(t, Config{Names: []string{"a", "b"}, Level: Error, Levels: map[string]Level{"a": Debug}, Format: "%n %v"})
	r.Logger("a").Debug("one")
	r.Logger("b").Warn("two")
	r.Logger("b").Error("three")
	if got := out.String(); got != "a one\nb three\n" {
		t.Errorf("written: %q", got)
	}
	if got := levels(r); got != "a:debug b:error" {
		t.Errorf("loggers: %s", got)
	}
}

func TestListKeepsOrder(t *testing.T) {
	r, _ := mustNew(t, Config{Names: []string{"main", "admin", "http"}, Level: Info, Levels: map[string]Level{"admin": Debug}})
	r.Logger("added")
	r.Logger("admin")
	if got := levels(r); got != "main:info admin:debug http:info added:info" {
		t.Errorf("list %s", got)
	}
	if err := r.SetAll("error"); err != nil {
		t.Fatal(err)
	}
	r.Logger("later")
	if got := levels(r); got != "main:error admin:error http:error added:error later:error" {
		t.Errorf("list %s", got)
	}
	if _, err := New(Config{Levels: map[string]Level{"nobody": Info}}); !errors.Is(err, ErrUnknownLogger) {
		t.Errorf("err = %v", err)
	}
	names, _ := mustNew(t, Config{})
	for i, l := range names.List() {
		if l.Name != Names()[i] {
			t.Errorf("default logger %d is %s", i, l.Name)
		}
	}
}

func TestChanges(t *testing.T) {
	const start = "admin:info main:info http:info"
	tests := []struct {
		name   string
		change func(*Registry) error
		want   string
		err    error
	}{
		{"all", func(r *Registry) error { return r.SetAll("debug") }, "admin:debug main:debug http:debug", nil},
		{"all-unknown", func(r *Registry) error { return r.SetAll("warn") }, start, ErrUnknownLevel},
		{"one", func(r *Registry) error { return r.Set("main", "off") }, "admin:info main:off http:info", nil},
		{"one-unknown-level", func(r *Registry) error { return r.Set("nobody", "loud") }, start, ErrUnknownLevel},
		{"one-unknown-name", func(r *Registry) error { return r.Set("nobody", "info") }, start, ErrUnknownLogger},
		{"paths", func(r *Registry) error { return r.SetPaths("main:debug,http:trace") }, "admin:info main:debug http:trace", nil},
		{"paths-equals", func(r *Registry) error { return r.SetPaths("main=debug,http:trace") }, "admin:info main:debug http:trace", nil},
		{"paths-blank", func(r *Registry) error { return r.SetPaths(", main:debug ,,") }, "admin:info main:debug http:info", nil},
		{"paths-none", func(r *Registry) error { return r.SetPaths(",") }, start, nil},
		{"paths-twice", func(r *Registry) error { return r.SetPaths("main:debug,main:error") }, "admin:info main:error http:info", nil},
		{"paths-no-name", func(r *Registry) error { return r.SetPaths("main:debug,:info") }, start, ErrEmptyName},
		{"paths-no-level", func(r *Registry) error { return r.SetPaths("main:debug,http:") }, start, ErrEmptyName},
		{"paths-no-separator", func(r *Registry) error { return r.SetPaths("main") }, start, ErrEmptyName},
		{"paths-first-separator", func(r *Registry) error { return r.SetPaths("main:debug:x") }, start, ErrUnknownLevel},
		{"paths-unknown-level", func(r *Registry) error { return r.SetPaths("main:debug,nobody:loud") }, start, ErrUnknownLevel},
		{"paths-unknown-name", func(r *Registry) error { return r.SetPaths("main:debug,nobody:info") }, start, ErrUnknownLogger},
		{"paths-level-before-name", func(r *Registry) error { return r.SetPaths("nobody:info,main:loud") }, start, ErrUnknownLevel},
		{"paths-empty-before-level", func(r *Registry) error { return r.SetPaths(":loud") }, start, ErrEmptyName},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, out := mustNew(t, Config{Names: []string{"admin", "main", "http"}, Level: Info})
			if err := tt.change(r); !errors.Is(err, tt.err) {
				t.Errorf("err = %v, want %v", err, tt.err)
			}
			if got := levels(r); got != tt.want {
				t.Errorf("list %s, want %s", got, tt.want)
			}
			if tt.err != nil && out.Len() > 0 {
				t.Errorf("a refused change was logged: %s", out)
			}
		})
	}
	if ErrUnknownLevel.Error() != "unknown logger level" || ErrUnknownLogger.Error() != "unknown logger name" ||
		ErrEmptyName.Error() != "empty logger name or empty logger level" {
		t.Error("texts of errors changed")
	}
}

func TestFormat(t *testing.T) {
	at := time.Date(2026, time.March, 4, 15, 6, 7, 8009010, time.FixedZone("x", 2*3600))
	pcs := make([]uintptr, 1)
	runtime.Callers(1, pcs)
	frame, _ := runtime.CallersFrames(pcs).Next()
	tests := []struct{ format, want string }{
		{"", ""}, {"plain", "plain"}, {"%v", `m "q"\x0a`}, {"%_", `m "q"\x0a`}, {"%j", `m \"q\"\\x0a`},
		{"%n|%l|%L", "main|warning|W"}, {"100%%", "100%"}, {"%", "%"}, {"%q %v", "%q " + `m "q"\x0a`}, {"%%v", "%v"},
		{"%P", strconv.Itoa(os.Getpid())},
		{"%a %A %b %B", "Wed Wednesday Mar March"}, {"%c", "Wed Mar  4 15:06:07 2026"}, {"%C %Y", "26 2026"}, {"%D %x", "03/04/26 03/04/26"},
		{"%m %d %H %I %M %S", "03 04 15 03 06 07"}, {"%e %f %F", "008 008009 008009010"}, {"%p %r", "PM 03:06:07 PM"},
		{"%R %T %X", "15:06 15:06:07 15:06:07"}, {"%z", "+02:00"},
		{"%s", "logctl_test.go"}, {"%g", "logctl/logctl_test.go"}, {"%#", strconv.Itoa(frame.Line)}, {"%@", "logctl/logctl_test.go:" + strconv.Itoa(frame.Line)},
		{"%!", "logctl.TestFormat"},
		{"[%Y-%m-%d %T.%e][%l][%n] [%s:%#] %v", "[2026-03-04 15:06:07.008][warning][main] [logctl_test.go:" + strconv.Itoa(frame.Line) + `] m "q"\x0a`},
	}
	for _, tt := range tests {
		t.Run(tt.format, func(t *testing.T) {
			r, out := mustNew(t, Config{Names: []string{"main"}})
			r.format = compileFormat(tt.format)
			rec := slog.NewRecord(at, slog.LevelWarn, "m \"q\"\n", pcs[0])
			if err := r.Logger("main").Handler().Handle(context.Background(), rec); err != nil {
				t.Fatal(err)
			}
			if got := out.String(); got != tt.want+"\n" {
				t.Errorf("got %q, want %q", got, tt.want+"\n")
			}
		})
	}
}

func TestDefaultFormat(t *testing.T) {
	r, out := mustNew(t, Config{})
	r.Logger("main").Info("hello")
	want := regexp.MustCompile(`^\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}\]\[\d+\]\[info\]\[main\] \[.*logctl_test\.go:\d+\] hello\n$`)
	if !want.MatchString(out.String()) {
		t.Errorf("line %q", out)
	}
}

func TestJSONPattern(t *testing.T) {
	r, out := mustNew(t, Config{Format: `{"level":"%l","message":"%j"}`})
	r.Logger("main").Info("quote \" backslash \\ newline \n", "key", "a \"b\"", "long", strings.Repeat("x", 20000))
	var m map[string]string
	if err := json.Unmarshal(out.Bytes(), &m); err != nil {
		t.Fatalf("%v: %.200s", err, out)
	}
	if m["level"] != "info" || !strings.HasPrefix(m["message"], `quote " backslash \ newline \x0a key="a \"b\"" long=xxx`) {
		t.Errorf("%.200q", m)
	}
}

func TestAttributes(t *testing.T) {
	r, out := mustNew(t, Config{Format: "%v"})
	log := r.Logger("main")
	steps := []struct {
		log  func()
		want string
	}{
		{func() { log.Info("m", "a", 1, "b", "x y", "c", "") }, `m a=1 b="x y" c=""`},
		{func() { log.With("w", true).Info("m", "a", 1.5) }, `m w=true a=1.5`},
		{func() { log.WithGroup("g").With("w", 1).WithGroup("h").Info("m", "a", 2) }, `m g.w=1 g.h.a=2`},
		{func() { log.WithGroup("").Info("m", slog.Group("g", "a", 1, slog.Group("", "b", 2))) }, `m g.a=1 g.b=2`},
		{func() { log.Info("m", slog.Attr{}, slog.Group("empty")) }, `m`},
		{func() { log.Info("m", "err", errors.New("boom\n"), "k=v", `a"b`) }, `m err=boom\x0a k=v="a\"b"`},
		{func() { log.Info("m", "v", valuer{}) }, `m v=resolved`},
	}
	for _, s := range steps {
		out.Reset()
		s.log()
		if got := strings.TrimSuffix(out.String(), "\n"); got != s.want {
			t.Errorf("got %s, want %s", got, s.want)
		}
	}
}

type valuer struct{}

func (valuer) LogValue() slog.Value { return slog.StringValue("resolved") }

// TestNoRecordForgesLines checks that every record is one printable line.
func TestNoRecordForgesLines(t *testing.T) {
	r, out := mustNew(t, Config{Format: "[%n] %v"})
	rng := rand.New(rand.NewPCG(3, 4))
	noise := func() string {
		b := make([]byte, rng.IntN(40))
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		return string(b) + "\r\n\x1b[2J\u202e"
	}
	const n = 10000
	for range n {
		r.Logger("main").Info(noise(), noise(), noise())
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) != n {
		t.Fatalf("%d lines, want %d", len(lines), n)
	}
	for _, line := range lines {
		if !utf8.ValidString(line) || strings.ContainsFunc(line, func(r rune) bool { return r < 0x20 || r == 0x7f || r == 0x202e }) {
			t.Fatalf("line %q", line)
		}
	}
}

func TestLinesAreBounded(t *testing.T) {
	r, out := mustNew(t, Config{Format: "%v|%n"})
	r.Logger("main").Info(strings.Repeat("é", 1<<20))
	if line := out.String(); len(line) > logfile.MaxLineBytes+1 || !strings.HasSuffix(line, "…|main\n") || !utf8.ValidString(line) {
		t.Errorf("%d bytes ending in %q", len(line), line[len(line)-20:])
	}
	// Text added or escaped by the pattern is limited, too.
	for _, pattern := range []string{strings.Repeat("x", 2<<10) + "%v", "%j"} {
		r, out := mustNew(t, Config{Format: pattern})
		r.Logger("main").Info(strings.Repeat(`"`, 1<<20))
		if line := out.String(); len(line) > logfile.MaxLineBytes+1 || !strings.HasSuffix(line, "…\n") || strings.Count(line, "\n") != 1 {
			t.Errorf("%.10s: a line of %d bytes, which ends in %q", pattern, len(line), line[len(line)-10:])
		}
	}
}

func TestReopenableFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.log")
	r, err := New(Config{Format: "%v", Path: path})
	if err != nil {
		t.Fatal(err)
	}
	log := r.Logger("main")
	log.Info("one")
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	if err := r.Reopen(); err != nil {
		t.Fatal(err)
	}
	log.Info("two")
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{path + ".1": "one\n", path: "two\n"} {
		if got, err := os.ReadFile(name); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if _, err := New(Config{Path: filepath.Join(path, "x")}); err == nil {
		t.Error("opened a file below a file")
	}
	without, _ := mustNew(t, Config{})
	if err := errors.Join(without.Reopen(), without.Close()); err != nil {
		t.Error(err)
	}
}

func TestDisabledRecordsDoNotAllocate(t *testing.T) {
	r, _ := mustNew(t, Config{Level: Info})
	log := r.Logger("main")
	ctx := context.Background()
	if n := testing.AllocsPerRun(100, func() { log.LogAttrs(ctx, slog.LevelDebug, "m") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestChangesUnderLoad logs and changes levels concurrently. Each change is atomic:
// readers of the list never see half of one.
func TestChangesUnderLoad(t *testing.T) {
	r, _ := mustNew(t, Config{Names: []string{"a", "b"}, Level: Critical})
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			log := r.Logger("logger-" + strconv.Itoa(w))
			for range 300 {
				log.Info("m")
				list := r.List()
				if list[0].Level != list[1].Level {
					t.Errorf("half a change: %v", list)
				}
			}
		})
		wg.Go(func() {
			for i := range 300 {
				level := Level(i%2 + int(Error)).String()
				if err := r.SetPaths("a:" + level + ",b:" + level); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkLog(b *testing.B) {
	for _, level := range []Level{Info, Error} {
		b.Run("logger="+level.String(), func(b *testing.B) {
			r, err := New(Config{Level: level, Output: discard{}})
			if err != nil {
				b.Fatal(err)
			}
			log := r.Logger("main")
			b.ReportAllocs()
			for b.Loop() {
				log.Info("listener bound", "address", "127.0.0.1:9901")
			}
		})
	}
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// TestAppendPadded compares numbers around each power of ten with package fmt.
func TestAppendPadded(t *testing.T) {
	for digits := 1; digits <= 9; digits++ {
		for power := 1; power <= 1e9; power *= 10 {
			for _, n := range []int{power - 1, power, power + 1, 2*power - 1, 2 * power} {
				if got, want := string(appendPadded([]byte("x"), n, digits)), fmt.Sprintf("x%0*d", digits, n); got != want {
					t.Errorf("%d with %d digits: %s, want %s", n, digits, got, want)
				}
			}
		}
	}
}
