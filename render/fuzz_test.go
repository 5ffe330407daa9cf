package render

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// FuzzJSON checks that encoding/json reads the output and finds the original
// names and values, with U+FFFD for invalid UTF-8.
func FuzzJSON(f *testing.F) {
	for _, s := range nasty() {
		f.Add(s, s)
	}
	rules := store.New(store.Options{}).Tags() // compiling them takes longer than an input
	f.Fuzz(func(t *testing.T, name, value string) {
		st := store.New(store.Options{Tags: rules})
		st.Root().Text("t." + name).Set(value)
		st.Root().Counter("c." + name).Inc()
		st.Root().Histogram("h."+name, store.Bytes)
		var b bytes.Buffer
		if err := JSON(&b, st, Options{}); err != nil {
			t.Fatal(err)
		}
		var got struct {
			Stats []struct {
				Name       string
				Value      any
				Histograms struct {
					ComputedQuantiles []struct{ Name string } `json:"computed_quantiles"`
				}
			}
		}
		if err := json.Unmarshal(b.Bytes(), &got); err != nil {
			t.Fatalf("%v\n%s", err, b.Bytes())
		}
		clean := func(s string) string { return string([]rune(s)) }
		name = clean(strings.TrimRight(name, "."))
		dot := "."
		if name == "" {
			dot = ""
		}
		s := got.Stats
		if len(s) != 3 || s[0].Name != "t"+dot+name || s[0].Value != clean(value) || s[1].Name != "c"+dot+name || s[1].Value != 1.0 ||
			len(s[2].Histograms.ComputedQuantiles) != 1 || s[2].Histograms.ComputedQuantiles[0].Name != "h"+dot+name {
			t.Errorf("name %q, value %q: got %+v from\n%s", name, value, got, b.Bytes())
		}
		if strings.ContainsAny(b.String(), "<>\n\u2028\u2029") {
			t.Errorf("unescaped: %s", b.Bytes())
		}
	})
}

// FuzzTextStats checks that network input cannot forge lines: a name cleaned on
// entry makes one line.
func FuzzTextStats(f *testing.F) {
	for _, s := range nasty() {
		f.Add(s, s, s)
	}
	rules := store.New(store.Options{}).Tags()
	f.Fuzz(func(t *testing.T, name, tag, value string) {
		st := store.New(store.Options{Tags: rules})
		network := st.ScopeWith("", store.ScopeOptions{Network: true})
		tg := tags.Tag{Name: entry(tag), Value: entry(value)}
		network.Counter("c"+entry(name), tg).Inc()
		network.Gauge("g"+entry(name), tg).Set(1)
		network.Histogram("h"+entry(name), store.Bytes, tg)
		network.Text("t"+entry(name), tg).Set(entry(value))
		var b bytes.Buffer
		if err := Text(&b, st, Options{}); err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(b.Bytes(), []byte("\n")); n != 4 || !bytes.HasSuffix(b.Bytes(), []byte("\n")) {
			t.Errorf("%d lines for 4 stats:\n%q", n, b.Bytes())
		}
	})
}

// entry cleans a received name as statsd does before it reaches the store.
func entry(s string) string {
	b := []byte(strings.ToValidUTF8(s, "_"))
	for i, c := range b {
		if c < 0x20 || c == 0x7f {
			b[i] = '_'
		}
	}
	return string(b)
}

// FuzzExposition reads the expositions back with a small reader of the formats:
// no duplicate series, one TYPE line for each metric, and only allowed
// characters.
func FuzzExposition(f *testing.F) {
	for i, s := range nasty() {
		f.Add(uint64(i), s, s)
	}
	rules := store.New(store.Options{}).Tags()
	f.Fuzz(func(t *testing.T, seed uint64, name, value string) {
		st := newStore(store.Options{Tags: rules})
		fill(t, st, seed, 6) // the fewer, the more inputs
		for _, sc := range []*store.Scope{st.Root(), st.ScopeWith("", store.ScopeOptions{Network: true})} {
			sc.Counter(name, tags.Tag{Name: value, Value: name}, tags.Tag{Name: name, Value: value}).Add(7)
			sc.Text("r."+name, tags.Tag{Name: name, Value: value}).Set(value)
			sc.Histogram("h"+value, store.Bytes, tags.Tag{Name: value, Value: value})
		}
		for _, o := range []Options{{TextReadouts: true}, {TextReadouts: true, Buckets: Summary}} {
			var text, om bytes.Buffer
			if err := Exposition(&text, st, o); err != nil {
				t.Fatal(err)
			}
			checkExposition(t, text.String(), plainMetric)
			if err := OpenMetrics(&om, st, o); err != nil {
				t.Fatal(err)
			}
			body, ok := strings.CutSuffix(om.String(), "# EOF\n")
			if !ok {
				t.Fatalf("no end:\n%s", om.String())
			}
			checkExposition(t, body, plainMetric)
		}
		for e := EscapeUnderscores; e <= EscapeValues; e++ {
			var text bytes.Buffer
			if err := Exposition(&text, st, Options{TextReadouts: true, Escaping: e}); err != nil {
				t.Fatal(err)
			}
			checkExposition(t, text.String(), func(s string) bool { return e == AllowUTF8 || plainWithColons(s) })
		}
	})
}

// quotes reads the escapes between quotes.
var quotes = strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\n`, "\n")

// plainWithColons reports whether s is a metric name that needs no quotes. Names of
// labels have no colons.
func plainWithColons(s string) bool { return plainMetric(strings.ReplaceAll(s, ":", "_")) }

// unquoted returns the name in a part of a line. A name that is not plain must
// be quoted.
func unquoted(s string, plain func(string) bool) (name string, ok bool) {
	inner, quoted := strings.CutPrefix(s, `"`)
	if !quoted {
		return s, plain(s)
	}
	inner, ok = strings.CutSuffix(inner, `"`)
	name = quotes.Replace(inner)
	return name, ok && name != "" && !plain(name)
}

// plainSample rewrites a line whose metric name stands between braces as one
// that has it in front, still between quotes.
func plainSample(line string) string {
	if !strings.HasPrefix(line, `{"`) {
		return line
	}
	end := 2
	for end < len(line) && line[end] != '"' {
		if line[end] == '\\' {
			end++
		}
		end++
	}
	if end >= len(line) {
		return line
	}
	return strings.ReplaceAll(line[1:end+1], "{", "\x01") + "{" + strings.TrimPrefix(line[end+1:], ",")
}

// checkExposition reads body, whose names satisfy allowed.
func checkExposition(t *testing.T, body string, allowed func(string) bool) {
	t.Helper()
	types, series := map[string]bool{}, map[string]bool{}
	family := ""
	if !utf8.ValidString(body) {
		t.Fatalf("invalid UTF-8:\n%q", body)
	}
	for line := range strings.Lines(body) {
		line, ok := strings.CutSuffix(line, "\n")
		if !ok {
			t.Fatalf("no newline at the end:\n%s", body)
		}
		if rest, ok := strings.CutPrefix(line, "# TYPE "); ok {
			cut := strings.LastIndexByte(rest, ' ')
			name, ok := unquoted(rest[:max(cut, 0)], plainWithColons)
			typ := rest[cut+1:]
			if types[name] || !ok || !allowed(name) || !strings.Contains(" counter gauge histogram summary unknown ", " "+typ+" ") {
				t.Fatalf("bad line %q in\n%s", line, body)
			}
			types[name], family = true, name
			continue
		}
		name, rest, ok := strings.Cut(plainSample(line), "{")
		name, plain := unquoted(strings.ReplaceAll(name, "\x01", "{"), plainWithColons)
		if !ok || !plain || !allowed(name) || !strings.HasPrefix(name, family) {
			t.Fatalf("bad line %q in\n%s", line, body)
		}
		labels, value, ok := cutLabels(rest, allowed)
		if !ok || value == "" || strings.ContainsAny(value, " {}\"") {
			t.Fatalf("bad line %q in\n%s", line, body)
		}
		if series[name+labels] {
			t.Fatalf("series %s{%s} twice in\n%s", name, labels, body)
		}
		series[name+labels] = true
	}
}

// cutLabels reads labels up to the brace, and the value behind it.
func cutLabels(s string, allowed func(string) bool) (labels, value string, ok bool) {
	whole := s
	seen := map[string]bool{}
	for {
		if rest, end := strings.CutPrefix(s, "} "); end {
			return whole[:len(whole)-len(s)], rest, true
		}
		if len(seen) > 0 {
			if s, ok = strings.CutPrefix(s, ","); !ok {
				return "", "", false
			}
		}
		name, rest := cutName(s)
		rest, _ = strings.CutPrefix(rest, `="`)
		name, plain := unquoted(name, plainMetric)
		if !plain || !allowed(name) || strings.HasPrefix(name, "__") || seen[name] {
			return "", "", false
		}
		seen[name] = true
		for {
			i := strings.IndexAny(rest, `"\`)
			if i < 0 || rest[i] == '\\' && (i+1 == len(rest) || !strings.Contains(`\"n`, rest[i+1:i+2])) {
				return "", "", false
			}
			if rest[i] == '"' {
				s = rest[i+1:]
				break
			}
			rest = rest[i+2:]
		}
	}
}

// cutName cuts s behind the name that it begins with.
func cutName(s string) (name, rest string) {
	end := strings.IndexByte(s, '=')
	if strings.HasPrefix(s, `"`) {
		for end = 1; end < len(s) && s[end] != '"'; end++ {
			if s[end] == '\\' {
				end++
			}
		}
		end++
	}
	end = max(0, min(end, len(s)))
	return s[:end], s[end:]
}

func plainMetric(s string) bool {
	for i := range len(s) {
		if c := s[i]; c != '_' && (c|0x20 < 'a' || c|0x20 > 'z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}
