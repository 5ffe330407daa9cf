package admin

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/redact"
)

// Settings are named values that mutations change. They let the server see what
// a request changed: its endpoint gets the parameter ttl, after which the
// previous values return, and works with /audit/undo, and the audit log has the
// values that differ unless the handler calls [Request.Changed]. Endpoints that
// change the same values share one Settings. The functions must be safe for
// concurrent use.
type Settings struct {
	// Name identifies the settings as a whole, such as "runtime".
	Name string
	// Values returns the current values, without names that have none. The
	// caller owns the map.
	Values func() map[string]string
	// Restore sets values, and removes values that are empty. After an error, whose
	// text is sent to the client, nothing has changed.
	Restore func(values map[string]string) error

	// value replaces Values if there can be very many: it returns one value, "" if there
	// is none. A request then changes only settings that its parameters name.
	value func(name string) string
}

// current returns the current values, at least those with these names.
func (of *Settings) current(names []string) map[string]string {
	if of.value == nil {
		return of.Values()
	}
	values := make(map[string]string)
	for _, name := range names {
		if v := of.value(name); v != "" {
			values[name] = v
		}
	}
	return values
}

// The parameters of endpoints that can be tried or that have settings.
var (
	dryRunParam = Param{Name: "dry_run", Help: "show what would change, and change nothing", Kind: ParamFlag}
	ttlParam    = Param{Name: "ttl", Help: "time after which the previous value returns, such as 90s or 2h"}
)

// The bounds of ttl.
const (
	minTTL = time.Second
	maxTTL = 30 * 24 * time.Hour
)

// manners reads the parameters that the server handles itself and removes them from
// the query of r.
func (e *Endpoint) manners(r *Request) error {
	drop := func(name string) {
		r.query = slices.DeleteFunc(slices.Clone(r.query), func(p Pair) bool { return p.Name == name })
	}
	if e.DryRun {
		r.dryRun = r.query.Has(dryRunParam.Name)
		drop(dryRunParam.Name)
	}
	if e.Settings == nil {
		return nil
	}
	text := r.query.Value(ttlParam.Name)
	drop(ttlParam.Name)
	if text == "" {
		return nil
	}
	ttl, err := time.ParseDuration(text)
	if err != nil || ttl < minTTL || ttl > maxTTL {
		return badRequest("ttl " + quoted(text[:min(len(text), unknownBytes)]) + " is not a duration from 1s to 720h, such as 90s or 2h\n")
	}
	r.ttl = ttl
	return nil
}

// setting is a value that a request changed or set again. The values are not masked.
type setting struct {
	name, before, after string
	earlier             *temporary // what the value was until then, if it was temporary
}

// edit are the settings that a request set.
type edit struct {
	of     *Settings
	values []setting // by name
}

// changed reports whether a value is another one than before.
func (e *edit) changed() bool {
	return e != nil && slices.ContainsFunc(e.values, func(v setting) bool { return v.before != v.after })
}

// tracked calls f, which may change the settings with these names, and notes on r which
// have changed.
func (r *Request) tracked(of *Settings, may []string, f func() error) error {
	before := of.current(may)
	err := f()
	after := of.current(may)
	names := make(map[string]bool)
	for _, values := range []map[string]string{before, after} {
		for name := range values {
			if before[name] != after[name] {
				names[name] = true
			}
		}
	}
	if err == nil {
		for _, name := range r.sets {
			names[name] = true
		}
	}
	r.edit = &edit{of: of}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		r.edit.values = append(r.edit.values, setting{name: name, before: before[name], after: after[name]})
	}
	if len(r.changes) == 0 { // the handler leaves the record to the server
		for _, v := range r.edit.values {
			if v.before != v.after {
				r.Changed(v.name, v.before, v.after)
			}
		}
	}
	return err
}

// until returns the end of the settings that r made temporary, or the zero time.
func (r *Request) until(now time.Time) time.Time {
	if r.ttl <= 0 || !r.edit.changed() {
		return time.Time{}
	}
	return now.Add(r.ttl)
}

// Sets declares which settings the request sets, so that a setting that already
// has the value becomes temporary, or permanent, with the others.
func (r *Request) Sets(names ...string) { r.sets = append(r.sets, names...) }

// DryRun reports whether the handler must change nothing, and instead call Changed for
// each change that it would make. The server then answers with these. It is false
// unless the endpoint has DryRun.
func (r *Request) DryRun() bool { return r.dryRun }

// wouldChange replaces the response by the changes that the request would make.
func (w *Response) wouldChange(r *Request) error {
	if w.stage != stageBuffer || w.status != 200 {
		return nil
	}
	w.buf, w.contentType = w.buf[:0], typeText
	var out strings.Builder
	for _, c := range r.changes {
		if c.Before != c.After || c.After == redact.Mark {
			out.WriteString(quoted(c.What) + ": " + quoted(c.Before) + " -> " + quoted(c.After) + "\n")
		}
	}
	if out.Len() == 0 {
		return w.text(200, "dry run: nothing would change\n")
	}
	return w.text(200, "dry run: nothing was changed\n"+out.String())
}

// The names of the settings that are switches.
const (
	healthSwitch = "health"
	lookupSwitch = "recent lookups"
)

// switchSettings is a setting with one value that is there while it is on.
func switchSettings(name, value string, on func() bool, set func(on bool)) *Settings {
	return &Settings{
		Name: name,
		Values: func() map[string]string {
			if on() {
				return map[string]string{name: value}
			}
			return nil
		},
		Restore: func(values map[string]string) error {
			set(values[name] == value)
			return nil
		},
	}
}

// healthSettings is the switch of the inbound health checks.
func (s *Server) healthSettings() *Settings {
	health := s.src.Health
	if health == nil {
		return nil
	}
	return switchSettings(healthSwitch, "failing", health.HealthFailed, func(fail bool) {
		if fail {
			health.FailHealth()
		} else {
			health.RestoreHealth()
		}
	})
}

// lookupSettings is the switch of the recent lookups.
func (s *Server) lookupSettings() *Settings {
	symbols := s.store.Symbols()
	return switchSettings(lookupSwitch, "on", symbols.RecentEnabled, func(on bool) {
		if on {
			symbols.EnableRecent()
		} else {
			symbols.DisableRecent()
		}
	})
}

// runtimeSettings are the values of the admin layer.
func (s *Server) runtimeSettings() *Settings {
	if s.src.Runtime == nil {
		return nil
	}
	value := func(name string) string { return s.src.Runtime.Snapshot().Override(name) }
	return &Settings{Name: "runtime", value: value, Restore: s.src.Runtime.Modify}
}

// loggerSettings are the log levels.
func (s *Server) loggerSettings() *Settings {
	if s.src.Loggers == nil {
		return nil
	}
	return &Settings{Name: "log levels", Values: s.src.Loggers.Settings, Restore: s.src.Loggers.Restore}
}
