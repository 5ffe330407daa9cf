package admin

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/golden"
	"github.com/statsd-admin/statsd-admin/internal/guard/guardtest"
	"github.com/statsd-admin/statsd-admin/internal/jsonschema"
	"github.com/statsd-admin/statsd-admin/internal/redact"
	"github.com/statsd-admin/statsd-admin/server/listeners"
	"github.com/statsd-admin/statsd-admin/server/logctl"
)

// TestDryRunsOfTheDocumentation checks the output that docs/changes.md shows.
func TestDryRunsOfTheDocumentation(t *testing.T) {
	doc, err := os.ReadFile("../docs/changes.md")
	if err != nil {
		t.Fatal(err)
	}
	world := newWorld()
	s := newServer(t, Config{Sources: world.sources()})
	for _, name := range []string{"cart.a", "cart.b", "cart.c"} {
		s.store.Root().Counter(name).Inc()
	}
	for target, body := range samples(t, string(doc), "    $ curl -X POST 'localhost:9901") {
		if !strings.Contains(target, "dry_run") {
			continue
		}
		if got := string(s.Request("POST", target, nil).Body); got != body {
			t.Errorf("POST %s: %q, want %q", target, got, body)
		}
	}
}

// samples returns the output of the commands in doc that begin with prompt, by the rest
// of the command up to the next quote.
func samples(t *testing.T, doc, prompt string) map[string]string {
	t.Helper()
	out := make(map[string]string)
	for _, rest := range strings.Split(doc, prompt)[1:] {
		target, rest, _ := strings.Cut(rest, "'\n")
		var body strings.Builder
		for line := range strings.Lines(rest) {
			text, indented := strings.CutPrefix(line, "    ")
			if !indented || strings.HasPrefix(text, "$ ") {
				break
			}
			body.WriteString(text)
		}
		out[target] = body.String()
	}
	if len(out) == 0 {
		t.Fatalf("no command begins with %q", prompt)
	}
	return out
}

// TestDryRunsChangeNothing checks that dry_run says what a mutation would change, and
// that nothing but the audit log notices it.
func TestDryRunsChangeNothing(t *testing.T) {
	for target, want := range map[string]string{
		"/runtime_modify?dry_run&limits.max_sessions=350&gone=": "limits.max_sessions: 200 -> 350\n",
		"/runtime_modify?api_key=hush&dry_run":                  "api_key: \"\" -> [redacted]\n",
		"/logging?main=off&dry_run":                             "main: debug -> off\n",
		"/logging?level=info&dry_run=1":                         "main: debug -> info\n",
		"/logging?paths=main:off,stats:error&dry_run":           "main: debug -> off\nstats: info -> error\n",
		"/logging?main=debug&dry_run":                           "",
		"/healthcheck/fail?dry_run":                             "state: LIVE -> DRAINING\n",
		"/healthcheck/ok?dry_run":                               "",
		"/reset_counters?dry_run&filter=^x":                     "nonzero counters: 2 -> 0\n",
		"/ingest/forget?prefix=web.&dry_run":                    "received stats web.: 2 -> 0\n",
		"/drain_listeners?dry_run&inboundonly":                  "",
		"/drain_listeners?dry_run&graceful": "listener ingress: open -> draining, then stopped\n" +
			"\"listener local\\n\": open -> draining, then stopped\nlistener metrics_in: open -> draining, then stopped\n",
		"/drain_listeners?dry_run&graceful&skip_exit": "listener ingress: open -> draining, then open\n" +
			"\"listener local\\n\": open -> draining, then open\nlistener metrics_in: open -> draining, then open\n",
		"/drain_listeners?dry_run": "listener ingress: open -> stopped\n" +
			"\"listener local\\n\": open -> stopped\nlistener metrics_in: open -> stopped\n",
		"/stats/recentlookups/enable?dry_run&ttl=5m": "recent lookups: off -> on\n",
	} {
		world := newWorld()
		s := newServer(t, Config{Sources: world.sources()})
		for _, name := range []string{"x.a", "x.b", "y"} {
			s.store.Root().Counter(name).Inc()
		}
		before := world.String()
		r := s.Request("POST", target, nil)
		head := "dry run: nothing was changed\n"
		if want == "" {
			head = "dry run: nothing would change\n"
		}
		_, rest, _ := strings.Cut(string(r.Body), "\n")
		lines := slices.Sorted(strings.Lines(rest))
		if got := strings.Join(lines, ""); r.Status != 200 || !strings.HasPrefix(string(r.Body), head) || !sameLines(got, want) {
			t.Errorf("POST %s: %d %q, want %q", target, r.Status, r.Body, head+want)
		}
		if after := world.String(); after != before {
			t.Errorf("POST %s changed\n%s\nto\n%s", target, before, after)
		}
		if s.store.Root().Counter("x.a").Value() != 1 || s.store.Symbols().RecentEnabled() || len(s.Temporary()) > 0 {
			t.Errorf("POST %s changed the store", target)
		}
		if e := s.Audit(1)[0]; !e.DryRun || e.Undoable() || e.Status != 200 {
			t.Errorf("POST %s: audit %+v", target, e)
		}
	}
	s := newServer(t, Config{Sources: newWorld().sources()})
	s.store.Symbols().EnableRecent()
	s.store.Root().Counter("x.a").Inc()
	if r := s.Request("POST", "/stats/recentlookups/clear?dry_run", nil); !strings.Contains(string(r.Body), "\nrecorded lookups: ") || s.store.Symbols().RecentTotal() == 0 {
		t.Errorf("clear: %q", r.Body)
	}
	for _, target := range []string{"/logging?nobody=off&dry_run", "/logging?main=loud&dry_run", "/reopen_logs?dry_run", "/quitquitquit?dry_run", "/cpuprofiler?enable=y&dry_run", "/ingest/forget?dry_run"} {
		if r := s.Request("POST", target, nil); r.Status != 400 {
			t.Errorf("POST %s: %d %q, want 400", target, r.Status, r.Body)
		}
	}
}

// sameLines reports whether two texts have the same lines in any order.
func sameLines(a, b string) bool {
	return slices.Equal(slices.Sorted(strings.Lines(a)), slices.Sorted(strings.Lines(b)))
}

// TestTemporarySettings follows settings with a ttl through changes, extensions and
// their end.
func TestTemporarySettings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world := newWorld()
		s := newServer(t, Config{Sources: world.sources(), Now: time.Now})
		defer s.Close()
		value := func(key string) string { return world.overrides()[key] }
		check := func(when, want string) {
			t.Helper()
			synctest.Wait()
			var left []string
			for _, v := range s.Temporary() {
				left = append(left, fmt.Sprintf("%s=%s for %s, then %s", v.Name, v.Value, time.Until(v.Until), v.BackTo))
			}
			got := fmt.Sprintf("k=%s other=%s main=%s; %s", value("k"), value("other"), (*worldLoggers)(world).List()[1].Level, strings.Join(left, "; "))
			if got != want {
				t.Errorf("%s: %s\nwant %s", when, got, want)
			}
		}
		post(t, s, "/runtime_modify?k=1")
		post(t, s, "/runtime_modify?k=2&other=x&ttl=10m")
		post(t, s, "/logging?main=trace&ttl=1m")
		check("at first", "k=2 other=x main=trace; main=trace for 1m0s, then debug; k=2 for 10m0s, then 1; other=x for 10m0s, then ")
		time.Sleep(time.Minute)
		check("after a minute", "k=2 other=x main=debug; k=2 for 9m0s, then 1; other=x for 9m0s, then ")
		if e := s.Audit(1)[0]; e.Reason != "ttl ended" || e.Undoes != 3 || e.Path != "/logging" || !slices.Equal(e.Changes, []Change{{"main", "trace", "debug"}}) {
			t.Errorf("the audit log has %+v", e)
		}
		post(t, s, "/runtime_modify?k=2&ttl=20m") // longer, with the same value
		check("longer", "k=2 other=x main=debug; other=x for 9m0s, then ; k=2 for 20m0s, then 1")
		post(t, s, "/runtime_modify?k=3&ttl=5m") // another value: back to the first
		check("another", "k=3 other=x main=debug; k=3 for 5m0s, then 1; other=x for 9m0s, then ")
		world.runtime.Reload()
		time.Sleep(5 * time.Minute)
		check("its end", "k=1 other=x main=debug; other=x for 4m0s, then ")
		post(t, s, "/runtime_modify?other=x") // the same value, but permanent
		check("permanent", "k=1 other=x main=debug; ")
		time.Sleep(time.Hour)
		check("later", "k=1 other=x main=debug; ")

		post(t, s, "/runtime_modify?k=9&ttl=1m")
		_ = world.runtime.Modify(map[string]string{"k": "of the program"})
		time.Sleep(time.Minute)
		check("changed by the program", "k=of the program other=x main=debug; ")

		post(t, s, "/healthcheck/fail?ttl=30s")
		post(t, s, "/stats/recentlookups/enable?ttl=40s")
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if world.state != "LIVE" || !s.store.Symbols().RecentEnabled() {
			t.Errorf("after 30 s the state is %s", world.state)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if s.store.Symbols().RecentEnabled() {
			t.Error("lookups are still recorded")
		}

		post(t, s, "/runtime_modify?k=5&ttl=1m")
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Hour)
		check("kept by a closed server", "k=5 other=x main=debug; k=5 for -59m0s, then of the program")
	})
}

// TestLevelsSetAgain sets a temporary level again in all ways: with a ttl it stays temporary,
// without one it does not, and requests that set nothing or fail leave it alone.
func TestLevelsSetAgain(t *testing.T) {
	for _, fineGrain := range []bool{false, true} {
		for target, left := range map[string]int{
			"/logging": 1, "/logging?main=debug": 0, "/logging?paths=main=debug": 0, "/logging?main=debug&ttl=2h": 1, "/logging?level=debug": 0,
			"/logging?level=loud": 1, "/logging?level=debug&main=debug": 1, "/logging?main=loud&ttl=2h": 1, "/logging?paths=main:debug,stats:loud": 1,
		} {
			loggers, err := logctl.New(logctl.Config{FineGrain: fineGrain, Names: []string{"main", "stats"}, Output: io.Discard})
			if err != nil {
				t.Fatal(err)
			}
			s := newServer(t, Config{Sources: Sources{Loggers: loggers}})
			post(t, s, "/logging?main=debug&ttl=1h")
			until := s.Temporary()[0].Until
			s.Request("POST", target, nil)
			if got := s.Temporary(); len(got) != left || left == 1 && got[0].Until.After(until) != strings.HasSuffix(target, "debug&ttl=2h") {
				t.Errorf("POST %s, by source file %t: %+v, want %d temporary settings", target, fineGrain, got, left)
			}
			_ = s.Close()
		}
	}
}

// TestSettingsAreRecorded: an endpoint of the program changes its settings and records nothing.
// The audit log has the values that differ.
func TestSettingsAreRecorded(t *testing.T) {
	values := map[string]string{"limit": "1", "other": "x", "api_key": "one"}
	s := newServer(t, Config{})
	err := s.Handle(Endpoint{
		Path: "/limit", Mutates: true, Params: []Param{{Name: "to"}},
		Settings: &Settings{Name: "limits", Values: func() map[string]string { return maps.Clone(values) }},
		Serve: func(w *Response, r *Request) error {
			values["limit"], values["api_key"] = r.query.Value("to"), "two"
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Request("POST", "/limit?to=5", nil)
	s.Request("POST", "/limit?to=5", nil)
	audit := s.Audit(2)
	want := []Change{{"api_key", redact.Mark, redact.Mark}, {"limit", "1", "5"}}
	if !slices.Equal(audit[1].Changes, want) || len(audit[0].Changes) != 0 {
		t.Errorf("the audit log has %v and %v, want %v and none", audit[1].Changes, audit[0].Changes, want)
	}
}

func TestTTLIsChecked(t *testing.T) {
	world := newWorld()
	s := newServer(t, Config{Sources: world.sources()})
	defer s.Close()
	before := world.String()
	for _, ttl := range []string{"10", "0s", "-5m", "999ms", "721h", "soon", "1h%0A"} {
		r := s.Request("POST", "/runtime_modify?k=1&ttl="+ttl, nil)
		if r.Status != 400 || !strings.Contains(string(r.Body), "from 1s to 720h") || world.String() != before {
			t.Errorf("ttl=%s: %d %q", ttl, r.Status, r.Body)
		}
	}
	post(t, s, "/runtime_modify?k=1&ttl=")
	if len(s.Temporary()) != 0 || world.overrides()["k"] != "1" {
		t.Error("an empty ttl is not like none")
	}
	// Ends of settings that cannot be restored are tried again; the space is bounded.
	long := strings.Repeat("v", 4000)
	status := 0
	for i := 0; i < 2000 && status != 503; i++ {
		status = s.Request("POST", fmt.Sprintf("/runtime_modify?t=%d%s&k%d=x&ttl=1h", i, long, i%900), nil).Status
		world.runtime.Modify(map[string]string{fmt.Sprintf("k%d", i%900): ""})
		s.Request("POST", fmt.Sprintf("/runtime_modify?z%d=%s&ttl=2h", i%300, long), nil)
	}
	if status != 503 || s.temporaries.bytes > 2*temporaryBytes {
		t.Errorf("status %d with %d bytes of temporary settings", status, s.temporaries.bytes)
	}
	for _, x := range s.Temporary() {
		post(t, s, "/runtime_modify?"+x.Name+"=v")
	}
	if s.temporaries.bytes != 0 {
		t.Errorf("without temporary settings, they have %d bytes", s.temporaries.bytes)
	}
}

// TestManyTemporarySettings does not end in the time of a test if the end of each visits
// all others.
func TestManyTemporarySettings(t *testing.T) {
	var all temporaries
	const many, together = 300_000, 3
	key := func(i int) settingKey { return settingKey{nil, strconv.Itoa(i)} }
	for i := range many {
		all.setLocked(key(i), temporary{value: "x", seq: uint64(i / together)})
	}
	if len(all.values) != many || len(all.ends) != many/together {
		t.Errorf("%d settings with %d ends", len(all.values), len(all.ends))
	}
	for i := range many {
		all.dropLocked(key(i))
		if want := (many - i - 1 + together - 1) / together; len(all.ends) != want {
			t.Fatalf("%d ends without setting %d, want %d", len(all.ends), i, want)
		}
	}
	if len(all.values) != 0 || all.bytes != 0 {
		t.Errorf("%d settings of %d bytes are left", len(all.values), all.bytes)
	}
}

// failingRuntime refuses changes while fail is set.
type failingRuntime struct {
	Runtime
	fail atomic.Bool
	wild guardtest.Fuse
}

func (r *failingRuntime) Modify(values map[string]string) error {
	r.wild.Burn()
	if r.fail.Load() {
		return errors.New("refused")
	}
	return r.Runtime.Modify(values)
}

func TestRestoreIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world := newWorld()
		sources := world.sources()
		rt := &failingRuntime{Runtime: sources.Runtime}
		sources.Runtime = rt
		panics := guardtest.New(t)
		s := newServer(t, Config{Sources: sources, Now: time.Now, Logger: panics.Logger()})
		defer s.Close()
		post(t, s, "/runtime_modify?k=1&ttl=1m")
		rt.wild.Light(1)
		time.Sleep(time.Minute)
		panics.Caught("end of a temporary setting")
		rt.fail.Store(true)
		time.Sleep(90 * time.Second)
		synctest.Wait()
		if len(s.Temporary()) != 1 {
			t.Fatal("the setting was given up")
		}
		rt.fail.Store(false)
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(s.Temporary()) != 0 || world.overrides()["k"] != "" {
			t.Errorf("%v %v", s.Temporary(), world.overrides())
		}
	})
}

// TestUndo undoes changes of all kinds, and what cannot be undone is refused.
// TestUndoOfSwitches turns switches on and off, and undoes both.
func TestUndoOfSwitches(t *testing.T) {
	world := newWorld()
	s := newServer(t, Config{Sources: world.sources()})
	defer s.Close()
	for _, tt := range []struct {
		on, off string
		state   func() bool
	}{
		{"/healthcheck/fail", "/healthcheck/ok", (*worldHealth)(world).HealthFailed},
		{"/stats/recentlookups/enable", "/stats/recentlookups/disable", s.store.Symbols().RecentEnabled},
	} {
		post(t, s, tt.on)
		post(t, s, tt.off)
		off := s.Audit(1)[0].Seq
		for _, x := range []struct {
			seq uint64
			on  bool
		}{{off, true}, {off - 1, false}} {
			if post(t, s, fmt.Sprintf("/audit/undo?id=%d", x.seq)); tt.state() != x.on {
				t.Errorf("%s: on is %t after the undo of entry %d", tt.on, tt.state(), x.seq)
			}
		}
	}
}

func TestUndo(t *testing.T) {
	world := newWorld()
	s := newServer(t, Config{Sources: world.sources()})
	defer s.Close()
	undo := func(seq uint64, status int, want string) {
		t.Helper()
		before := world.String()
		r := s.Request("POST", fmt.Sprintf("/audit/undo?id=%d", seq), nil)
		if r.Status != status || !strings.Contains(string(r.Body), want) {
			t.Errorf("undo of %d: %d %q, want %d %q", seq, r.Status, r.Body, status, want)
		}
		if status != 200 && world.String() != before {
			t.Errorf("undo of %d changed\n%s\nto\n%s", seq, before, world)
		}
	}
	last := func() AuditEntry { return s.Audit(1)[0] }

	post(t, s, "/runtime_modify?k=1&api_key=hush")
	post(t, s, "/runtime_modify?k=2&limits.max_sessions=350&api_key=hidden")
	if r := s.Request("POST", "/audit/undo?id=2&dry_run", nil); string(r.Body) != "dry run: nothing was changed\n"+
		"api_key: [redacted] -> [redacted]\nk: 2 -> 1\nlimits.max_sessions: 350 -> \"\"\n" || world.overrides()["k"] != "2" {
		t.Errorf("dry run: %d %q", r.Status, r.Body)
	}
	undo(1, 409, "api_key has changed since entry 1: it is [redacted], not [redacted]")
	undo(2, 200, "OK")
	if got := fmt.Sprint(world.overrides()); got != "map[api_key:hush k:1]" {
		t.Errorf("after the undo: %s", got)
	}
	if e := last(); e.Undoes != 2 || !e.Undoable() || strings.Contains(fmt.Sprint(e.Changes), "hush") {
		t.Errorf("audit %+v", e)
	}
	undo(2, 409, "was undone by entry 5")
	undo(5, 200, "OK") // entry 2 is in effect again
	undo(2, 200, "OK")
	undo(1, 200, "OK")
	if got := fmt.Sprint(world.overrides()); got != "map[]" {
		t.Errorf("in the end: %s", got)
	}

	levels := slices.Clone(world.levels)
	post(t, s, "/logging?level=off")
	undo(last().Seq, 200, "OK")
	if !slices.Equal(world.levels, levels) {
		t.Errorf("levels %v, want %v", world.levels, levels)
	}
	post(t, s, "/healthcheck/fail")
	undo(last().Seq, 200, "OK")
	if world.state != "LIVE" {
		t.Errorf("the state is %s", world.state)
	}
	post(t, s, "/stats/recentlookups/enable")
	undo(last().Seq, 200, "OK")
	if s.store.Symbols().RecentEnabled() {
		t.Error("lookups are recorded")
	}
	post(t, s, "/reset_counters")
	undo(last().Seq, 400, "has no values to restore")
	s.Request("POST", "/runtime_modify", nil)
	undo(last().Seq, 400, "has no values to restore")
	undo(9999, 404, "no entry 9999")
	for _, id := range []string{"", "0", "-1", "x", "1x"} {
		if r := s.Request("POST", "/audit/undo?id="+id, nil); r.Status != 400 || !strings.HasPrefix(string(r.Body), "usage: ") {
			t.Errorf("id=%s: %d %q", id, r.Status, r.Body)
		}
	}
}

// TestUndoOfTemporarySettings checks that an undo makes a value temporary again.
func TestUndoOfTemporarySettings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world := newWorld()
		s := newServer(t, Config{Sources: world.sources(), Now: time.Now})
		defer s.Close()
		post(t, s, "/runtime_modify?k=2&ttl=10m")
		post(t, s, "/runtime_modify?k=3")
		time.Sleep(time.Minute)
		post(t, s, "/audit/undo?id=2")
		if v := s.Temporary(); len(v) != 1 || v[0].Value != "2" || time.Until(v[0].Until) != 9*time.Minute {
			t.Errorf("temporary: %+v", v)
		}
		post(t, s, "/runtime_modify?k=4")
		time.Sleep(time.Hour)
		post(t, s, "/audit/undo?id=4") // k=2 would have ended
		if v := world.overrides()["k"]; v != "" || len(s.Temporary()) > 0 {
			t.Errorf("k is %q, temporary: %+v", v, s.Temporary())
		}
		post(t, s, "/runtime_modify?k=5&ttl=10m")
		post(t, s, "/audit/undo?id=6")
		time.Sleep(time.Hour)
		if v := world.overrides()["k"]; v != "" || len(s.Temporary()) > 0 {
			t.Errorf("k is %q, temporary: %+v", v, s.Temporary())
		}
	})
}

// TestUndoNeedsTheRole checks that an undo needs the role of the change.
func TestUndoNeedsTheRole(t *testing.T) {
	port := impatient(start(t, Config{Sources: newWorld().sources(), Auth: &Auth{Tokens: testTokens(t)}, Now: later()}))
	var value atomic.Int64
	value.Store(1)
	text := func() string { return strconv.FormatInt(value.Load(), 10) }
	var failing atomic.Bool
	set := func(to string) error {
		if failing.Load() {
			return errors.New("the disk is full")
		}
		n, err := strconv.ParseInt(to, 10, 64)
		value.Store(n)
		return err
	}
	if err := port.Handle(Endpoint{Path: "/strict", Mutates: true, DryRun: true, Params: []Param{{Name: "to"}}, Settings: &Settings{
		Name:    "strict",
		Values:  func() map[string]string { return map[string]string{"value": text()} },
		Restore: func(values map[string]string) error { return set(values["value"]) },
	}, Serve: func(_ *Response, r *Request) error {
		r.Changed("value", text(), r.Query().Value("to"))
		if r.DryRun() {
			return nil
		}
		return set(r.Query().Value("to"))
	}}); err != nil {
		t.Fatal(err)
	}
	ask := func(role Role, target string) string {
		return talk(t, port, request("POST "+target+" HTTP/1.1", "Connection: close", "Authorization: Bearer "+secret(role)))
	}
	ask(RoleAdmin, "/strict?to=0&dry_run")
	if value.Load() != 1 {
		t.Errorf("a dry run set the value to %s", text())
	}
	ask(RoleAdmin, "/strict?to=2")
	if a := ask(RoleOperate, "/audit/undo?id=2"); !strings.HasPrefix(a, "HTTP/1.1 403 ") || value.Load() != 2 {
		t.Errorf("operate: %s, value %s", a, text())
	}
	if a := ask(RoleAdmin, "/audit/undo?id=2"); !strings.HasPrefix(a, "HTTP/1.1 200 ") || value.Load() != 1 {
		t.Errorf("admin: %s, value %s", a, text())
	}
	ask(RoleAdmin, "/strict?to=3")
	failing.Store(true)
	if a := ask(RoleAdmin, "/audit/undo?id=5"); !strings.HasPrefix(a, "HTTP/1.1 400 ") || !strings.HasSuffix(a, "\r\n\r\nthe disk is full\n") || value.Load() != 3 {
		t.Errorf("an undo that fails: %s, value %s", a, text())
	}
	if e := port.Audit(1)[0]; e.Status != 400 || port.Audit(2)[1].UndoneBy != 0 {
		t.Errorf("an undo that fails is entry %+v after %+v", e, port.Audit(2)[1])
	}
}

// TestAuditIsBounded checks that large entries evict old ones.
func TestAuditIsBounded(t *testing.T) {
	s := newServer(t, Config{Sources: newWorld().sources(), Limits: Limits{AuditBytes: 100_000}})
	for i := range 200 {
		post(t, s, fmt.Sprintf("/runtime_modify?k=%d%s", i, strings.Repeat("x", 4000)))
	}
	list := s.Audit(1000)
	if len(list) < 3 || len(list) > 20 || list[0].Seq != 200 || s.audit.bytes > 100_000 {
		t.Errorf("%d entries in %d bytes, the newest is %d", len(list), s.audit.bytes, list[0].Seq)
	}
	if _, ok := s.audit.find(list[len(list)-1].Seq - 1); ok {
		t.Error("an evicted entry was found")
	}
}

// TestShowAudit compares /audit with golden files and with its schema.
func TestShowAudit(t *testing.T) {
	world := newWorld()
	s := newServer(t, Config{Sources: world.sources()})
	defer s.Close()
	post(t, s, "/runtime_modify?limits.max_sessions=350&password=hush&ttl=90s")
	s.Request("POST", "/logging?main=loud", nil)
	post(t, s, "/logging?main=trace")
	post(t, s, "/audit/undo?id=3")
	post(t, s, "/healthcheck/fail?dry_run")
	for name, target := range map[string]string{"audit-text": "/audit", "audit-json": "/audit?format=json&limit=100"} {
		r := s.Request("GET", target, nil)
		if name == "audit-json" {
			jsonschema.Check(t, "../docs/schema/audit.schema.json", r.Body)
		}
		if strings.Contains(string(r.Body), "hush") {
			t.Errorf("%s shows a secret", name)
		}
		golden.Check(t, name, r.Body)
	}
	jsonschema.Check(t, "../docs/schema/audit.schema.json", newServer(t, Config{}).Request("GET", "/audit?format=json", nil).Body)
}

// TestDrainsAreAudited drains listeners that are open, draining and stopped. The audit
// log has what changed.
func TestDrainsAreAudited(t *testing.T) {
	for target, want := range map[string]string{
		"/drain_listeners":             "a: open -> stopped, b: draining -> stopped, ",
		"/drain_listeners?graceful":    "a: open -> draining, then stopped, ",
		"/drain_listeners?inboundonly": "b: draining -> stopped, ",
	} {
		src := newWorld().sources()
		src.Listeners = func() []listeners.Listener {
			return []listeners.Listener{
				{Name: "a", Direction: listeners.Outbound}, {Name: "b", Direction: listeners.Inbound, DrainEnd: time.Now()}, {Name: "c", Direction: listeners.Inbound, Stopped: true},
			}
		}
		s := newServer(t, Config{Sources: src})
		if r := s.Request("POST", target, nil); r.Status != 200 || string(r.Body) != "OK\n" {
			t.Errorf("%s: %d %s", target, r.Status, r.Body)
		}
		e := s.Audit(1)[0]
		got := ""
		for _, c := range e.Changes {
			got += strings.TrimPrefix(c.What, "listener ") + ": " + c.Before + " -> " + c.After + ", "
		}
		if got != want || e.Undoable() {
			t.Errorf("%s: %s, want %s; undoable: %v", target, got, want, e.Undoable())
		}
	}
}

// TestAuditLines: the log has all of an entry, and nothing where there is nothing to say.
func TestAuditLines(t *testing.T) {
	var out bytes.Buffer
	a := newAuditLog(10, -1, slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})))
	for _, tt := range []struct {
		entry AuditEntry
		want  string
	}{
		{AuditEntry{Method: "POST", Path: "/a", Status: 200}, `method=POST path=/a keys="" peer="" principal="" role=none status=200`},
		{AuditEntry{
			Method: "POST", Path: "/b", Keys: []string{"k", "l"}, Peer: "p", Principal: Principal{Name: "n", Role: RoleAdmin}, Status: 403, DryRun: true,
			Until: time.Unix(0, 0).UTC(), Undoes: 1, Reason: "r", Changes: []Change{{"log levels", "x", "y"}, {"k", "", "z"}},
		}, `method=POST path=/b keys=k,l peer=p principal=n role=admin status=403 dry_run=true until=1970-01-01T00:00:00.000Z undoes=1 reason=r ` +
			`log_levels.before=x log_levels.after=y k.before="" k.after=z`},
	} {
		out.Reset()
		seq := a.add(tt.entry)
		if got, want := out.String(), fmt.Sprintf("level=INFO msg=audit seq=%d %s\n", seq, tt.want); got != want {
			t.Errorf("got  %swant %s", got, want)
		}
	}
}
