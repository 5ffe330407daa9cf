package admin

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

// TestDefaultLimits checks that a limit of 0 becomes the default, and a negative one
// is kept.
func TestDefaultLimits(t *testing.T) {
	want := Limits{
		HeaderBytes: 8192, TargetBytes: 8192, BodyBytes: 65536, Headers: 64, QueryParams: 128, QueryValue: 4096,
		Connections: 1024, ConnectionsPerPeer: 256,
		ReadTimeout: 5 * time.Second, IdleTimeout: time.Minute, StreamStall: 10 * time.Second, ResponseTime: 2 * time.Minute, ShutdownTime: 5 * time.Second,
		HeavyRunning: 4, HeavyWaiting: 16, HeavyWait: 2 * time.Second, Compressors: 4,
		RegexBytes: 1024, RegexProgram: 10_000, RegexBudget: 2 * time.Second, RegexParallel: 4,
		StatsStreams: 64, AuditEntries: 1000, AuditBytes: 1 << 20,
	}
	if got := DefaultLimits(); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	var none Limits
	for _, f := range reflect.ValueOf(&none).Elem().Fields() {
		f.SetInt(-1)
	}
	if got := none.withDefaults(); got != none {
		t.Errorf("without limits: %+v", got)
	}
	s := newServer(t, Config{})
	if g := s.regexes; g.wait != time.Second || g.queue >= 0 || cap(g.slots) != 4 {
		t.Errorf("filters: %d at a time, %d wait %v, want 4, any number, a second", cap(g.slots), g.queue, g.wait)
	}
	if g := s.heavy; g.wait != 2*time.Second || g.queue != 16 || cap(g.slots) != 4 {
		t.Errorf("large answers: %d at a time, %d wait %v, want 4, 16, two seconds", cap(g.slots), g.queue, g.wait)
	}
	if n := cap(s.compressors.slots); n != 4 {
		t.Errorf("%d answers are compressed at a time, want 4", n)
	}
	if l := s.filters.limits; l.Length != 1024 || l.Program != 10_000 || l.Budget != 2*time.Second {
		t.Errorf("filters: %+v", l)
	}
}

// TestDisabledLimitsAreLogged checks that a warning names each disabled limit and no
// other.
func TestDisabledLimitsAreLogged(t *testing.T) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Limits]()) {
		for value, warned := range map[int64]bool{-1: f.Name != "Compressors", 0: false, 1: false} {
			log, cfg := new(logBuffer), Config{}
			reflect.ValueOf(&cfg.Limits).Elem().FieldByIndex(f.Index).SetInt(value)
			cfg.Logger = log.logger()
			newServer(t, cfg)
			if got := strings.Contains(log.String(), "unlimited by configuration: "+f.Name+"\""); got != warned {
				t.Errorf("%s of %d: the log is %q", f.Name, value, log)
			}
		}
	}
	log := new(logBuffer)
	newServer(t, Config{Logger: log.logger(), Limits: Limits{Headers: -1, RegexBudget: -1}})
	if !strings.Contains(log.String(), "unlimited by configuration: Headers, RegexBudget") {
		t.Errorf("the log is %q", log)
	}
}
