package statsd

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/render"
	"github.com/statsd-admin/statsd-admin/render/naming"
	"github.com/statsd-admin/statsd-admin/statsd/line"
	"github.com/statsd-admin/statsd-admin/statsd/mapping"
	"github.com/statsd-admin/statsd-admin/store"
)

func rulesOf(t testing.TB, c mapping.Config) *mapping.Rules {
	t.Helper()
	r, err := mapping.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func labels(pairs ...string) (ls []mapping.Label) {
	for i := 0; i < len(pairs); i += 2 {
		ls = append(ls, mapping.Label{Name: pairs[i], Value: pairs[i+1]})
	}
	return ls
}

func TestRulesMapSamples(t *testing.T) {
	rules := []mapping.Rule{
		{Match: "app.*.hits", Name: "hits", Labels: labels("app", "$1", "code", "$2")},
		{Match: "app.*.honored", Name: "honored", Labels: labels("app", "$1"), HonorLabels: true},
		{Match: "empty.*", Name: "empty", Labels: labels("gone", "$2")},
		{Match: "noise.*", Name: "dropped", Drop: true},
		{Match: "c.only", Name: "counters", Kind: mapping.Counter},
		{Match: "scaled.*", Name: "scaled_${1}", Scale: 0.5},
		{Match: "doubled", Name: "doubled", Scale: 2},
		{Match: "negative", Name: "negative", Scale: -2},
		{Match: "zero", Name: "zero", Zero: true},
		{Match: "large", Name: "large", Scale: 1e300},
		{Match: `^re/(.*)$`, Regex: true, Name: "${1}"},
		{Match: "long.*", Name: "a", Labels: labels("l", "${1}${1}")},
	}
	for _, tt := range []struct {
		name, in string
		want     []string
		rejected map[string]uint64
	}{
		{"label", "app.shop.hits:2|c\napp.mail.hits:3|c", []string{"hits.app.mail 3", "hits.app.shop 2"}, nil},
		{"tags-kept", "app.shop.hits:2|c|#zone:eu,aa:1", []string{"hits.aa.1.app.shop.zone.eu 2"}, nil},
		{"label-wins", "app.shop.hits:2|c|#app:other,code:x", []string{"hits.app.shop 2"}, nil},
		{"cleaned-name-wins", "app.shop.hits:2|c|#zone:a\nx:1|c|#a-b:1", []string{"hits.app.shop.zone.a 2", "x.a-b.1 1"}, nil},
		{"tag-honored", "app.shop.honored:2|c|#app:other", []string{"honored.app.other 2"}, nil},
		{"tag-honored-in-the-middle", "app.shop.honored:2|c|#aa:1,app:other,zz:3", []string{"honored.aa.1.app.other.zz.3 2"}, nil},
		{"label-wins-in-the-middle", "app.shop.hits:2|c|#aa:1,app:other,zz:3", []string{"hits.aa.1.app.shop.zz.3 2"}, nil},
		{"empty-label-first", "empty.x:2|c|#gone:1,zz:3", []string{"empty.zz.3 2"}, nil},
		{"empty-label-in-the-middle", "empty.x:2|c|#aa:1,gone:2,zz:3", []string{"empty.aa.1.zz.3 2"}, nil},
		{"empty-label-alone", "empty.x:2|c", []string{"empty 2"}, nil},
		{"dropped", "noise.x:2|c\nnoise.x:2|c\nnoise.y:3|ms|#a:b\nnoise.z:m|s", nil, nil},
		{"dropped-partly", "c.only:1|c:5|ms", []string{"c.only count=1 sum=5", "counters 1"}, nil},
		{"scaled", "scaled.c:3|c\nscaled.c:3|c\nscaled.g:+3|g\nscaled.g:3|g\nscaled.g:-1|g\nscaled.t:4:6|ms|@0.5\nscaled.s:x|s", []string{"scaled_c 3", "scaled_g 1", "scaled_s 0", "scaled_t count=4 sum=10"}, nil},
		{"scaled-negative", "negative:3|c\nnegative:0|c\nnegative:3|h", []string{"negative 0", "negative_histogram count=1 sum=-6"}, map[string]uint64{"negative_counter": 1}},
		{"scaled-zero", "zero:3|g\nzero:+3|g", []string{"zero 0"}, nil},
		{"scaled-to-the-limit", "doubled:4503599627370496|c\ndoubled:4503599627370497|c", []string{"doubled 9007199254740992"}, map[string]uint64{"out_of_range": 1}},
		{"scaled-too-large", "large:1|c\nlarge:1e10|g", nil, map[string]uint64{"out_of_range": 2}},
		{"empty-name", "re/:1|c\nre/x.y..:2|c", []string{"x.y 2"}, map[string]uint64{"empty_name": 1}},
		{"long-label", "long." + strings.Repeat("x", 256) + ":1|c\nlong." + strings.Repeat("y", 257) + ":1|c",
			[]string{"a.l." + strings.Repeat("x", 512) + " 1"}, map[string]uint64{"tag_too_long": 1}},
		{"service-check", "_sc|app.db.hits|1", []string{"hits.app.db 1"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, Config{Rules: rulesOf(t, mapping.Config{Rules: rules}), CheckGauges: true})
			r.send(tt.in)
			r.want(tt.want...)
			again := strings.ReplaceAll(tt.in, "+", "") // known now
			r.send(again)
			for reason, n := range r.rejected() {
				if n != 2*tt.rejected[reason] {
					t.Errorf("%s: %d lines rejected, want %d", reason, n, 2*tt.rejected[reason])
				}
			}
			r.conserved()
		})
	}
}

func TestRulesDropUnmatched(t *testing.T) {
	r := newRig(t, Config{Rules: rulesOf(t, mapping.Config{DropUnmatched: true, Rules: []mapping.Rule{{Match: "a", Name: "b"}}})})
	r.send("a:1|c\nx:1|c\nx:1|c\ny:1:2:3|ms\nz:m|s\nx:x|c")
	r.want("b 1")
	l := r.Report().Listeners[0]
	if l.Dropped != 4 || l.Applied != 1 {
		t.Errorf("%d lines dropped and %d applied, want 4 and 1", l.Dropped, l.Applied)
	}
	if m := r.Mapping(); m.Mapped != 1 || m.Dropped != 0 || m.Unmatched != 6 {
		t.Errorf("%d samples mapped, %d dropped by rules, %d without one; want 1, 0 and 6", m.Mapped, m.Dropped, m.Unmatched)
	}
	r.conserved()
	e := r.Explain([]byte("x:1|c"))
	if !e.Samples[0].Dropped || e.Samples[0].Rule != nil {
		t.Errorf("explained as %+v", e.Samples[0])
	}
	r.SetRules(nil)
	r.send("x:1|c")
	if n := r.Mapping().Unmatched; n != 6 {
		t.Errorf("without rules %d samples were dropped, want 6 as before", n)
	}
}

// TestDroppedGaugesAreNotAdded: a change of a gauge that a rule drops is not checked
// against the gauge that has the name of the sample.
func TestDroppedGaugesAreNotAdded(t *testing.T) {
	r := newRig(t, Config{Rules: rulesOf(t, mapping.Config{Rules: []mapping.Rule{{Match: "g", Name: "x", Drop: true}, {Match: "h", Name: "g"}}})})
	r.send("h:1e308|g\ng:+1e308|g\nh:+1e308|g")
	r.want("g 1e+308")
	if l := r.conserved().Listeners[0]; l.Applied != 1 || l.Dropped != 1 || l.Rejected["out_of_range"] != 1 {
		t.Errorf("%d lines applied, %d dropped, rejected %v", l.Applied, l.Dropped, l.Rejected)
	}
}

func TestRulesAreCounted(t *testing.T) {
	first := []mapping.Rule{{Match: "a.*", Name: "a", Position: "m.yaml:1:3"}, {Match: "a.b", Name: "b"}, {Match: "c", Name: "c", Drop: true}}
	r := newRig(t, Config{Rules: rulesOf(t, mapping.Config{Rules: first}), ExporterMetrics: true})
	r.send("a.x:1:2:3|c\nc:1|g\na.y:1|c\nother:1|c")
	at := r.now
	r.now = r.now.Add(time.Minute)
	want := func(want string) {
		t.Helper()
		var got []string
		for _, u := range r.Mapping().Rules {
			got = append(got, fmt.Sprintf("%d %s %d", u.Number, u.Match, u.Matches))
			if u.Last.IsZero() != (u.Matches == 0) || u.Matches > 0 && !u.Last.Equal(at) {
				t.Errorf("rule %d matched last at %v, want %v", u.Number, u.Last, at)
			}
		}
		if got := strings.Join(got, ", "); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	want("1 a.* 4, 2 a.b 0, 3 c 1")
	if m := r.Mapping(); m.Rules[1].ShadowedBy != 1 || m.Mapped != 4 || m.Dropped != 1 || m.Rules[0].Position != "m.yaml:1:3" {
		t.Errorf("got %+v", m)
	}
	r.SetRules(rulesOf(t, mapping.Config{Rules: []mapping.Rule{{Match: "d", Name: "d"}, {Match: "a.*", Name: "e"}}}))
	want("1 d 0, 2 a.* 4")
	if x := r.Explain([]byte("a.x:1|c")).Samples[0].Rule; x == nil || x.Number != 2 || x.Match != "a.*" {
		t.Errorf("explained with rule %+v", x)
	}
	r.flush()
	for _, want := range []string{"loaded_mappings 2", "events_actions_total.action.map 4", "events_actions_total.action.drop 1", "events_unmapped_total 1"} {
		if got := exporterStats(r); !strings.Contains(got, "statsd_exporter_"+want+"\n") {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

// TestReloadLosesNoMatches reloads the rules while the matches of a packet are not counted
// yet.
func TestReloadLosesNoMatches(t *testing.T) {
	rules := mapping.Config{Rules: []mapping.Rule{{Match: "a.*", Name: "a"}}}
	reload := func() {}
	r := newRig(t, Config{Rules: rulesOf(t, rules), OnEvent: func([]byte) { reload() }})
	reload = func() { r.SetRules(rulesOf(t, rules)) }
	r.send("a.x:1|c\n_e{1,1}:t|u\na.y:1|c")
	if got := r.Mapping().Rules[0].Matches; got != 2 {
		t.Errorf("%d matches, want 2", got)
	}
}

func TestReloadOfRules(t *testing.T) {
	r := newRig(t, Config{})
	r.send("a.b:1|c\nx:1|c")
	load := func(rules ...mapping.Rule) error {
		return r.ReloadRules(func() (*mapping.Rules, error) { return mapping.New(mapping.Config{Rules: rules}) })
	}
	if err := load(mapping.Rule{Match: "a.*", Name: "mapped"}); err != nil {
		t.Fatal(err)
	}
	r.send("a.b:2|c\nx:1|c")
	var wrong *mapping.RuleError
	if err := load(mapping.Rule{Match: "(", Name: "a"}); !errors.As(err, &wrong) {
		t.Fatalf("got %v", err)
	}
	r.send("a.b:3|c")
	r.want("a.b 1", "mapped 5", "x 2")
	if m := r.Mapping(); m.Reloads != 1 || m.FailedReloads != 1 || m.Error == "" || !m.Reloaded.Equal(r.now) {
		t.Errorf("got %+v", m)
	}
	r.SetRules(nil)
	r.send("a.b:1|c")
	r.want("a.b 2", "mapped 5", "x 2")
}

// exposed returns the page of a rig in seconds.
func exposed(t *testing.T, r *rig) string {
	t.Helper()
	r.flush()
	var b bytes.Buffer
	if err := render.Exposition(&b, r.store, render.Options{}); err != nil {
		t.Fatal(err)
	}
	var out []string
	for line := range strings.Lines(b.String()) {
		if !strings.Contains(line, "proxy_") {
			out = append(out, line)
		}
	}
	return strings.Join(out, "")
}

// newSecondsRig returns a rig whose exposition shows timers in seconds.
func newSecondsRig(t *testing.T, cfg Config) *rig {
	t.Helper()
	r := &rig{t: t, now: time.Unix(1_700_000_000, 0)}
	r.store = store.New(store.Options{Now: func() time.Time { return r.now }, Naming: naming.Rules{NetworkSeconds: true}})
	cfg.Store, cfg.Now = r.store, func() time.Time { return r.now }
	var err error
	if r.Server, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	r.l = &listener{name: "test", addr: address{scheme: "udp", framing: datagrams}}
	r.l.metrics = newListenerMetrics(r.store.Own(), "test", r.l.addr)
	return r
}

// TestRulesChooseForms checks buckets, quantiles and help texts of rules, and
// that a family keeps one type.
func TestRulesChooseForms(t *testing.T) {
	r := newSecondsRig(t, Config{Rules: rulesOf(t, mapping.Config{
		Observe: &mapping.Observe{Quantiles: []float64{0.5}},
		Rules: []mapping.Rule{
			{Match: "h.*", Name: "h", Labels: labels("l", "$1"), Help: "A histogram.", Observe: &mapping.Observe{Buckets: []float64{0.005, 2}}},
			{Match: "clash", Name: "h", Labels: labels("l", "clash")},
			{Match: "c", Name: "c", Help: `A counter\.`},
		},
	})})
	r.send("h.ms:3:2500|ms\nh.plain:1|h\nclash:1|ms\nother:7|ms\nc:1|c\nc:1|c|#x:y")
	golden(t, "rules-forms", exposed(t, r))
	r.conserved()
}

// TestReloadReplacesForms checks that histograms change their form without a
// line being lost, and that others stay.
func TestReloadReplacesForms(t *testing.T) {
	rules := func(buckets ...float64) *mapping.Rules {
		return rulesOf(t, mapping.Config{Rules: []mapping.Rule{{Match: "h.*", Name: "h", Labels: labels("l", "$1"), Observe: &mapping.Observe{Buckets: buckets}}, {Match: "same", Name: "same", Observe: &mapping.Observe{Buckets: []float64{1}}}}})
	}
	r := newSecondsRig(t, Config{Rules: rules(1, 2)})
	r.send("h.a:1|h\nh.idle:1|h\nsame:1|h\nc:1|c")
	r.flush()
	r.SetRules(rules(1, 2))
	r.send("h.a:1|h\nsame:1|h\nc:1|c")
	if got, want := exposed(t, r), "h_count{l=\"a\"} 2\n"; !strings.Contains(got, want) {
		t.Errorf("equal rules: no %q in\n%s", want, got)
	}
	r.SetRules(rulesOf(t, mapping.Config{Rules: []mapping.Rule{
		{Match: "h.*", Name: "h", Labels: labels("l", "$1"), Observe: &mapping.Observe{Quantiles: []float64{0.9}}}, {Match: "same", Name: "same", Observe: &mapping.Observe{Buckets: []float64{1}}},
	}}))
	r.send("h.b:1|h\nsame:1|h\nc:1|c") // a new series: the family must change for it
	r.flush()
	r.send("h.a:5|h\nh.b:6|h")
	golden(t, "rules-reload", exposed(t, r))
	r.conserved()
}

func TestRulesHaveTimesToLive(t *testing.T) {
	r := newRig(t, Config{SetWindow: -1, TTL: TTL{Gauge: time.Hour}, Rules: rulesOf(t, mapping.Config{TTL: 30 * time.Second, Rules: []mapping.Rule{
		{Match: "short.*", Name: "short_$1", TTL: 10 * time.Second}, {Match: "long.*", Name: "long_$1", TTL: time.Minute},
	}})})
	r.send("short.c:1|c\nshort.s:m|s\nshort.t:1|ms\nlong.g:1|g\nlong.c:1|c\nother:1|c")
	for _, tt := range []struct {
		after int
		want  []string
	}{
		{0, []string{"long_c 1", "long_g 1", "other 1", "short_c 1", "short_s 1", "short_t count=1 sum=1"}},
		{12, []string{"long_c 1", "long_g 1", "other 1", "short_s 0"}},
		{40, []string{"long_c 1", "long_g 1"}},
	} {
		r.now = time.Unix(1_700_000_000, 0).Add(time.Duration(tt.after) * time.Second)
		r.flush()
		r.Sweep(false)
		r.Sweep(false)
		r.want(tt.want...)
	}
}

// TestHelpOfRules: families have the texts of their rules, which go with the last series.
func TestHelpOfRules(t *testing.T) {
	rules := func(text string) *mapping.Rules {
		return rulesOf(t, mapping.Config{Rules: []mapping.Rule{{Match: "plain", Name: "plain"}, {Match: "a.*", Name: "a", Labels: labels("l", "$1"), Help: text}, {Match: "b", Name: "b", Help: "Bs."}}})
	}
	r := newRig(t, Config{TTL: TTL{Counter: 10 * time.Second}, Rules: rules("As.")})
	step := func(send string, want map[string]string) {
		t.Helper()
		r.send(send)
		r.now = r.now.Add(6 * time.Second)
		r.flush()
		r.Sweep(false)
		r.flush()
		got := map[string]string{}
		for _, name := range []string{"plain", "a", "b"} {
			if text := r.registry.help.describe(name).Help; text != "" {
				got[name] = text
			}
		}
		if !maps.Equal(got, want) || len(r.registry.help.byName) != len(want) {
			t.Errorf("help texts %q, want %q", got, want)
		}
	}
	step("plain:1|c\na.x:1|c\na.y:1|c\nb:1|c", map[string]string{"a": "As.", "b": "Bs."})
	step("a.y:1|c", map[string]string{"a": "As.", "b": "Bs."})
	step("a.y:1|c", map[string]string{"a": "As."})
	step("a.y:1|c\nb:1|c", map[string]string{"a": "As.", "b": "Bs."})
	r.SetRules(rules("More."))
	step("a.y:1|c", map[string]string{"a": "More."})
	step("", map[string]string{"a": "More."})
	step("", map[string]string{})
}

// TestReloadStormLosesNoSample reloads rules while several workers count.
func TestReloadStormLosesNoSample(t *testing.T) {
	r := newRig(t, Config{})
	var sets []*mapping.Rules
	for i := range 4 {
		sets = append(sets, rulesOf(t, mapping.Config{Rules: slices.Repeat([]mapping.Rule{{Match: "a.*", Name: fmt.Sprint("r", i), Labels: labels("l", "$1")}}, i+1)}))
	}
	const lines = 2000
	workers := []*worker{r.newWorker("x"), r.newWorker("y"), r.newWorker("z")}
	var wg sync.WaitGroup
	done := make(chan struct{})
	for _, w := range workers {
		wg.Go(func() {
			for i := range lines {
				w.enter()
				w.packet(r.l, fmt.Appendf(nil, "a.x%d:1|c\na.y:2|c", i%7), false, source{})
				w.leave(r.l)
			}
		})
	}
	go func() { wg.Wait(); close(done) }()
	for i := 0; ; i++ {
		r.SetRules(sets[i%len(sets)])
		if i%3 == 0 {
			r.Flush(r.now)
		}
		select {
		case <-done:
		default:
			continue
		}
		break
	}
	sum := 0
	for _, s := range r.stats() {
		var name string
		var n int
		if _, err := fmt.Sscan(s, &name, &n); err != nil {
			t.Fatal(err)
		}
		sum += n
	}
	if want := 3 * lines * len(workers); sum != want {
		t.Errorf("counted %d, want %d", sum, want)
	}
	r.conserved()
}

func TestKindsOfSamples(t *testing.T) {
	for _, tt := range []struct {
		group group
		typ   line.Type
		want  mapping.Kind
	}{
		{counters, line.Counter, mapping.Counter},
		{gauges, line.Counter, mapping.Counter}, // that is kept as a gauge
		{gauges, line.Gauge, mapping.Gauge},
		{sets, line.Set, mapping.Set},
		{histograms, line.Timer, mapping.Observer},
		{histograms, line.Histogram, mapping.Observer},
		{histograms, line.Distribution, mapping.Observer},
	} {
		if got := kindOf(tt.group, tt.typ); got != tt.want {
			t.Errorf("%v of type %v is of kind %v, want %v", tt.group, tt.typ, got, tt.want)
		}
	}
}

// TestHelpOfEndedFamilies: a look at all texts is due once many families have ended, not
// at each flush in which one does.
func TestHelpOfEndedFamilies(t *testing.T) {
	const texts = 800
	var h helpTexts
	for i := range texts {
		h.set(strconv.Itoa(i), "help")
	}
	looks := 0
	for range texts {
		h.ended.Add(1)
		if h.stale() {
			h.retain(func(string) bool { looks++; return true })
		}
	}
	if looks < texts || looks > 10*texts {
		t.Errorf("looked at %d texts while %d families ended, want at most %d", looks, texts, 10*texts)
	}
}
