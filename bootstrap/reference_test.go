package bootstrap

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/internal/jsonschema"
	"go.yaml.in/yaml/v4"
	"google.golang.org/protobuf/proto"
)

// key is a key of the bootstrap as the decoder accepts it.
type key struct {
	path     string // lists end in []
	kind     string // what the value must be, as error texts put it
	required bool
	ignored  bool // accepted without effect
	noLimit  bool // -1 means no limit
	period   bool // a mapping that can also be one duration for all of its keys
	names    []string
	message  proto.Message // of the mapping; nil: none
}

// siblings holds the keys that a mapping needs before its other keys can be tried.
var siblings = map[string]string{
	"admin":                             "address: {socket_address: {address: 127.0.0.1, port_value: 1}}",
	"admin.access_log[]":                "typed_config: {'@type': FileAccessLog, path: /f}",
	"admin.access_log[].config":         "path: /f",
	"admin.access_log[].typed_config":   "'@type': FileAccessLog, path: /f",
	"admin.address.pipe":                "path: /s",
	"admin.address.socket_address":      "address: 127.0.0.1, port_value: 1",
	"admin.auth":                        "tokens_file: t",
	"admin.socket_options[]":            "int_value: 1",
	"admin.tls":                         "certificate_chain: c, private_key: k, client_ca: a",
	"admin.allow_paths[]":               "exact: a",
	"default_regex_engine":              "name: envoy.regex_engines.google_re2",
	"default_regex_engine.typed_config": "'@type': GoogleRE2",
	"health_listeners[]":                "address: {socket_address: {address: 127.0.0.1, port_value: 1}}",
	"layered_runtime.layers[]":          "name: a, admin_layer: {}",
	"admin.allow_paths[].safe_regex":    "regex: a",
	"admin.access_log[].filter.header_filter.header.safe_regex_match": "regex: a",
	"statsd.listeners[]":                       "address: 'tcp://:1'",
	"statsd":                                   "relay: [{targets: [{address: 'tcp://127.0.0.1:1'}]}]",
	"statsd.relay[]":                           "mode: hash, targets: [{address: 'tcp://127.0.0.1:1'}]",
	"statsd.relay[].targets[]":                 "address: 'tcp://127.0.0.1:1'",
	"statsd.relay[].targets[].health_check":    "address: '127.0.0.1:1'",
	"stats_config.stats_tags[]":                "tag_name: a",
	"sinks[]":                                  "statsd: {address: '127.0.0.1:1'}",
	"sinks[].statsd":                           "address: '127.0.0.1:1'",
	"sinks[].remote_write":                     "url: 'http://127.0.0.1:1'",
	"sinks[].otlp":                             "url: 'http://127.0.0.1:1'",
	"sinks[].graphite":                         "address: '127.0.0.1:1'",
	"sinks[].json_lines":                       "path: /dev/stdout",
	"sinks[].metrics_service":                  "url: 'http://127.0.0.1:1'",
	"sinks[].metrics_service.tls":              "certificate_chain: c, private_key: k",
	"sinks[].otlp.tls":                         "certificate_chain: c, private_key: k",
	"sinks[].remote_write.tls":                 "certificate_chain: c, private_key: k",
	"stats_sinks[]":                            "name: circuit_stream",
	"stats_config.histogram_bucket_settings[]": "match: {exact: a}",

	"admin.access_log[].typed_config.log_format":              "text_format: a",
	"admin.access_log[].filter.header_filter.header":          "name: a",
	"admin.access_log[].filter.status_code_filter.comparison": "value: {default_value: 1}",
	"admin.access_log[].filter.duration_filter.comparison":    "value: {default_value: 1}",
}

// documentWith returns a document that has value at path and, next to each key on
// the way, its siblings. Keys that exclude the tried one are left out.
func documentWith(path, value string) string {
	parts := strings.Split(path, ".")
	text := value
	if also := siblings[path]; also != "" && value == unknownKey {
		text = strings.TrimSuffix(value, "}") + ", " + also + "}"
	}
	for i := len(parts) - 1; i >= 0; i-- {
		name, lists := strings.TrimRight(parts[i], "[]"), strings.Count(parts[i], "[]")
		text = "'" + name + "': " + strings.Repeat("[", lists) + text + strings.Repeat("]", lists)
		var others map[string]any
		if err := yaml.Unmarshal([]byte("{"+siblings[strings.Join(parts[:i], ".")]+"}"), &others); err != nil {
			panic(err)
		}
		for _, other := range slices.Sorted(maps.Keys(others)) {
			if other != name && !excludes(name, other) {
				b, _ := json.Marshal(others[other])
				text += ", '" + other + "': " + string(b)
			}
		}
		text = "{" + text + "}"
	}
	return text
}

// excludes reports whether two keys of a mapping exclude each other.
func excludes(a, b string) bool {
	for _, group := range [][]string{
		{"typed_config", "config"}, {"int_value", "buf_value"}, {"exact", "prefix", "suffix", "contains", "safe_regex", "regex"},
		{"static_layer", "disk_layer", "admin_layer", "rtds_layer"}, {"text_format", "text_format_source", "json_format"}, {"socket_address", "pipe"}, sinkKinds,
	} {
		if slices.Contains(group, a) && slices.Contains(group, b) {
			return true
		}
	}
	return false
}

// unknownKey is a value with a key that no mapping knows.
const unknownKey = "{nothing: 1}"

// try parses a document that has value at path.
func try(path, value string) (*Config, []*Error) {
	c, err := Parse("a.yaml", []byte(documentWith(path, value)), Options{})
	if err == nil {
		return c, nil
	}
	return nil, err.(*Errors).List
}

// probe returns the description of the key at path, which the decoder gives away
// when the value is wrong.
func probe(path string) key {
	k := key{path: path}
	at := strings.ReplaceAll(path, "[]", "[0]")
	_, errs := try(path, unknownKey)
	for _, e := range errs {
		if allowed, ok := strings.CutPrefix(e.Message, "unknown field; allowed: "); ok && strings.HasPrefix(e.Field, at) {
			k.kind = "mapping"
			k.names = strings.FieldsFunc(allowed, func(r rune) bool { return r == ',' || r == ' ' })
			_, errs = try(path, "24h")
			k.period = errs == nil
			return k
		}
		if _, kind, ok := strings.Cut(e.Message, " is not "); ok && e.Field == at && k.kind == "" && kind != "set" {
			k.kind = kind
		}
		if kind, ok := strings.CutPrefix(e.Message, "not "); ok && e.Field == at {
			k.kind = kind
		}
	}
	if c, errs := try(path, "-1"); errs == nil && slices.ContainsFunc(c.Warnings, func(w string) bool { return strings.HasSuffix(w, ": no limit") }) {
		k.noLimit = true
	}
	if k.kind == "" {
		k.kind = "any value"
		if _, errs := try(path, "x"); slices.ContainsFunc(errs, func(e *Error) bool { return e.Field == at && strings.HasSuffix(e.Message, "is not a mapping") }) {
			k.kind = "free mapping"
		}
		for _, value := range []string{"{}", "x"} {
			if c, errs := try(path, value); errs == nil && slices.ContainsFunc(c.Warnings, func(w string) bool { return strings.HasSuffix(w, at+": accepted, but has no effect") }) {
				k.ignored = true
			}
		}
	}
	return k
}

// required returns the keys that the mapping at path must have.
func required(path string) (names []string) {
	_, errs := try(path, "{}")
	for _, e := range errs {
		name, ok := strings.CutPrefix(e.Field, strings.ReplaceAll(path, "[]", "[0]")+".")
		if ok && !strings.Contains(name, ".") && (strings.HasPrefix(e.Message, "required field is not set") || strings.HasSuffix(e.Message, "cannot be empty")) {
			names = append(names, name)
		}
	}
	return names
}

// shared maps the paths of mappings that several keys have in common to the section
// that describes them.
var shared = map[string]string{
	"admin.address":              "Addresses",
	"admin.metrics_address":      "Addresses",
	"health_listeners[].address": "Addresses",

	"admin.allow_paths[]": "Matchers",
	"admin.access_log[].filter.header_filter.header.string_match": "Matchers",
	"stats_config.stats_matcher.exclusion_list.patterns[]":        "Matchers",
	"stats_config.stats_matcher.inclusion_list.patterns[]":        "Matchers",
	"stats_config.histogram_bucket_settings[].match":              "Matchers",
	"sinks[].filters.include[]":                                   "Matchers",
	"sinks[].filters.exclude[]":                                   "Matchers",
	"statsd.parse.gauge_counters[]":                               "Matchers",
	"statsd.filters.allow[]":                                      "Matchers",
	"statsd.filters.deny[]":                                       "Matchers",
	"statsd.filters.tags[].names[]":                               "Matchers",

	"admin.access_log[].filter":                      "Access log filters",
	"admin.access_log[].filter.and_filter.filters[]": "Access log filters",
	"admin.access_log[].filter.or_filter.filters[]":  "Access log filters",

	"watchdog":                       "Watchdogs",
	"watchdogs.main_thread_watchdog": "Watchdogs",
	"watchdogs.worker_watchdog":      "Watchdogs",
}

// keys returns all keys that the decoder knows, by path.
func keys(t *testing.T) map[string]key {
	all := make(map[string]key)
	var walk func(path string)
	walk = func(path string) {
		if m, ok := elsewhere()[path]; ok {
			all[path] = key{path: path, kind: "mapping", message: m}
			return
		}
		k := probe(path)
		all[path] = k
		at := sectionAt(shared[path])
		if at != "" && at != path {
			if k.names = probe(at).names; !slices.Equal(k.names, probe(path).names) {
				t.Errorf("%s has other keys than %s", path, at)
			}
			return
		}
		if k.kind == "a list" {
			walk(path + "[]")
		}
		needed := required(path)
		for _, name := range k.names {
			walk(path + "." + name)
			if child := all[path+"."+name]; slices.Contains(needed, name) {
				child.required = true
				all[path+"."+name] = child
			}
		}
	}
	_, errs := try("nothing", "1")
	_, allowed, _ := strings.Cut(errs[0].Message, "allowed: ")
	for name := range strings.SplitSeq(allowed, ", ") {
		walk(name)
	}
	return all
}

// sectionAt returns the path of the section with a title.
func sectionAt(title string) string {
	for _, s := range reference {
		if s.title == title && title != "" {
			return s.at
		}
	}
	return ""
}

// text returns the type of a key for people.
func (k key) text(all map[string]key) string {
	if title := shared[k.path]; title != "" {
		return "mapping, see [" + title + "](#" + strings.ReplaceAll(strings.ToLower(title), " ", "-") + ")"
	}
	for _, s := range reference {
		if s.at == k.path && k.path != "" {
			return "mapping, see [" + s.title + "](#" + strings.ReplaceAll(strings.ToLower(s.title), " ", "-") + ")"
		}
	}
	kind, _, _ := strings.Cut(k.kind, ", written like")
	kind, _, _ = strings.Cut(kind, " such as")
	kind, _, _ = strings.Cut(kind, " (")
	for _, article := range []string{"a ", "an ", "the "} {
		kind = strings.TrimPrefix(kind, article)
	}
	switch {
	case k.period:
		return "duration, or mapping of durations"
	case kind == "list":
		item := all[k.path+"[]"].text(all)
		for _, noun := range []string{"mapping", "string", "integer", "number", "origin", "address range"} {
			if rest, ok := strings.CutPrefix(item, noun); ok {
				item = noun + "s" + rest
			}
		}
		return "list of " + item
	case kind == "free mapping":
		return "mapping with any keys"
	case k.noLimit && strings.HasPrefix(kind, "integer"):
		return "integer above 0, or -1 for no limit"
	case k.noLimit && strings.HasPrefix(kind, "size"):
		return "size above 0 bytes, or -1 for no limit"
	case k.noLimit:
		return kind + ", or -1 for no limit"
	case strings.HasPrefix(kind, "one of "):
		return "`" + strings.ReplaceAll(strings.TrimPrefix(kind, "one of "), ", ", "`, `") + "`"
	case strings.HasPrefix(kind, "known type; known: "):
		return "`" + strings.ReplaceAll(strings.TrimPrefix(kind, "known type; known: "), ", ", "`, `") + "`"
	case strings.HasPrefix(kind, "listener address"), strings.HasPrefix(kind, "known engine"):
		return "string"
	case strings.HasPrefix(kind, "SHA-256"):
		return "64 hexadecimal digits"
	}
	return strings.NewReplacer(" of at least", ", at least").Replace(kind)
}

// schemas is what the JSON Schema consists of.
type schemas struct {
	keys     map[string]key
	meanings map[string]string
	messages *messageSchemas
}

// schema returns the JSON Schema of a key.
func (k key) schema(d *schemas) map[string]any {
	s := make(map[string]any)
	if meaning := d.meanings[k.path]; meaning != "" {
		s["description"] = meaning
	}
	if title := shared[k.path]; title != "" {
		s["$ref"] = "#/$defs/" + strings.ReplaceAll(title, " ", "")
		if k.path == "admin.metrics_address" {
			s["properties"] = map[string]any{"pipe": map[string]any{"type": "null"}}
		}
		return s
	}
	k.body(s, d)
	if strings.HasPrefix(k.path, "stats_sinks[].") {
		delete(s, "additionalProperties") // each kind of sink has other keys
	}
	return s
}

// body adds to s what values of the key must be.
func (k key) body(s map[string]any, d *schemas) {
	bounds := regexp.MustCompile(`(?:integer|number|size) in \[(\S+), ([^]]+)\]`).FindStringSubmatch(k.kind)
	switch {
	case k.message != nil:
		s["$ref"] = d.messages.of(k.message.ProtoReflect().Descriptor())["$ref"]
	case k.kind == "free mapping", k.path == "statsd.mapping.rules":
		s["type"] = []string{"object", "null"}
	case k.kind == "mapping":
		k.object(s, d)
		if k.period {
			s["type"] = []string{"object", "string", "null"}
		}
	case k.kind == "a list":
		s["type"] = []string{"array", "null"}
		s["items"] = d.keys[k.path+"[]"].schema(d)
	case strings.HasPrefix(k.kind, "a boolean"):
		s["type"] = []string{"boolean", "null"}
	case bounds != nil: // text holds a number too
		s["type"] = []string{"number", "string", "null"}
		if !strings.HasPrefix(k.kind, "a number") {
			s["type"] = []string{"integer", "string", "null"}
		}
		s["minimum"], s["maximum"] = json.Number(bounds[1]), json.Number(bounds[2])
		if k.noLimit {
			s["minimum"] = -1
			s["not"] = map[string]any{"const": 0}
		}
	case strings.HasPrefix(k.kind, "one of "):
		words := []any{nil}
		for word := range strings.SplitSeq(strings.TrimPrefix(k.kind, "one of "), ", ") {
			words = append(words, word)
		}
		s["enum"] = words
	case strings.HasPrefix(k.kind, "a file mode"), k.noLimit:
		s["type"] = []string{"integer", "string", "null"}
	case strings.HasPrefix(k.kind, "a duration in seconds"):
		s["type"], s["pattern"] = []string{"string", "null"}, messageDuration().String()
	case k.kind != "any value":
		s["type"] = []string{"string", "null"}
	}
}

// object adds the keys of a mapping to s.
func (k key) object(s map[string]any, d *schemas) {
	properties := make(map[string]any)
	var needed []string
	for _, name := range k.names {
		path := strings.TrimPrefix(k.path+"."+name, ".")
		properties[name] = d.keys[path].schema(d)
		if d.keys[path].required {
			needed = append(needed, name)
		}
	}
	s["type"], s["properties"], s["additionalProperties"] = []string{"object", "null"}, properties, false
	if needed != nil {
		s["required"] = needed
	}
}

// standard returns the default of a key: the value of its row, which must make the
// same configuration as no value, or a value found by trying.
func standard(t *testing.T, k key, row row) string {
	if k.required {
		return "required"
	}
	unset, errs := try(k.path, "null")
	equal := func(value string) bool {
		c, errs := try(k.path, value)
		return unset != nil && errs == nil && same(reflect.ValueOf(c), reflect.ValueOf(unset))
	}
	values, choice := strings.CutPrefix(k.kind, "one of ")
	if strings.HasPrefix(k.kind, "a boolean") {
		values, choice = "true, false", true
	}
	switch {
	case row.standard != "" && !strings.HasPrefix(row.standard, "("):
		if !equal(strconv.Quote(row.standard)) {
			t.Errorf("%s: %s is not the default (%v)", k.path, row.standard, errs)
		}
		return "`" + row.standard + "`"
	case row.standard != "":
		return row.standard[1 : len(row.standard)-1]
	case choice:
		for value := range strings.SplitSeq(values, ", ") {
			if equal(value) {
				return "`" + value + "`"
			}
		}
	case strings.Contains(k.kind, " in ["):
		t.Errorf("%s: no default is given", k.path)
	}
	return "—"
}

// same reports whether two configurations are equal, positions and the document
// apart. Functions are equal if both are set.
func same(a, b reflect.Value) bool {
	if a.Type() == reflect.TypeFor[Raw]() || a.Type() == reflect.TypeFor[yaml.Node]() {
		return true
	}
	switch a.Kind() {
	case reflect.Pointer, reflect.Interface:
		return a.IsNil() == b.IsNil() && (a.IsNil() || a.Elem().Type() == b.Elem().Type() && same(a.Elem(), b.Elem()))
	case reflect.Func:
		return a.IsNil() == b.IsNil()
	case reflect.Struct:
		for i := range a.NumField() {
			if name := a.Type().Field(i).Name; name != "Warnings" && !same(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return true
	case reflect.Slice:
		if a.Len() != b.Len() {
			return false
		}
		for i := range a.Len() {
			if !same(a.Index(i), b.Index(i)) {
				return false
			}
		}
		return true
	case reflect.Map:
		return a.Len() == b.Len()
	}
	return a.Equal(b)
}

// section is a section of the reference: the keys of the mapping at a path and of
// the mappings in it that have no section.
type section struct {
	title, at, intro string
	rows             []row
}

// row describes a key. A standard in parentheses is not a value of the key.
type row struct{ name, standard, meaning string }

// TestReference keeps docs/configuration.md and docs/bootstrap.schema.json equal to
// what the decoder accepts. With -update it rewrites them.
func TestReference(t *testing.T) {
	all := keys(t)
	meanings := make(map[string]string)
	var b bytes.Buffer
	b.WriteString(referenceHead)
	var ignored []string
	for _, s := range reference {
		fmt.Fprintf(&b, "\n## %s\n\n", s.title)
		if s.intro != "" {
			fmt.Fprintf(&b, "%s\n\n", s.intro)
		}
		b.WriteString("| Key | Type | Default | Meaning |\n|---|---|---|---|\n")
		for _, r := range s.rows {
			path := strings.TrimPrefix(s.at+"."+r.name, ".")
			k, ok := all[path]
			switch {
			case !ok:
				t.Errorf("%s is described, but the decoder does not know it", path)
				continue
			case meanings[path] != "":
				t.Errorf("%s is described twice", path)
			case r.meaning == "" || !strings.HasSuffix(r.meaning, "."):
				t.Errorf("%s has no meaning, or one without a period", path)
			}
			meanings[path] = r.meaning
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", r.name, k.text(all), standard(t, k, r), strings.ReplaceAll(r.meaning, "|", `\|`))
		}
	}
	for _, path := range slices.Sorted(maps.Keys(all)) {
		k := all[path]
		if strings.HasPrefix(k.kind, "a duration") && !k.noLimit {
			if _, errs := try(path, "-1s"); errs == nil {
				t.Errorf("%s can be negative", path)
			}
		}
		switch {
		case meanings[path] != "" || strings.HasSuffix(path, "[]"):
		case k.ignored:
			ignored = append(ignored, path)
		default:
			t.Errorf("%s (%s) has no meaning in the reference", path, k.kind)
		}
	}
	fmt.Fprintf(&b, "\n## Ignored keys\n\n%s\n\n", ignoredHead)
	for _, path := range ignored {
		meanings[path] = "Accepted and ignored."
		fmt.Fprintf(&b, "- `%s`\n", path)
	}
	compareFile(t, "../docs/configuration.md", b.Bytes())

	defs := make(map[string]any)
	d := &schemas{all, meanings, newMessageSchemas(defs)}
	for _, title := range shared {
		if at := sectionAt(title); at != "" {
			def := make(map[string]any)
			all[at].body(def, d)
			defs[strings.ReplaceAll(title, " ", "")] = def
		}
	}
	root := map[string]any{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Bootstrap of statsd-admin", "$defs": defs,
	}
	top := key{kind: "mapping"}
	for path := range all {
		if !strings.ContainsAny(path, ".[") {
			top.names = append(top.names, path)
		}
	}
	slices.Sort(top.names)
	top.object(root, d)
	text, err := json.MarshalIndent(root, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	compareFile(t, "../docs/bootstrap.schema.json", append(text, '\n'))
}

// compareFile compares a file with its generated text, or writes it with -update.
func compareFile(t *testing.T, path string, got []byte) {
	t.Helper()
	if f := flag.Lookup("update"); f != nil && f.Value.String() == "true" {
		if t.Failed() {
			return
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s does not match the decoder; run this test with -update", path)
	}
}

// TestExamplesFollowTheSchema validates the shipped configurations against the
// schema, and loads them without a warning about a deprecated key.
func TestExamplesFollowTheSchema(t *testing.T) {
	root := jsonschema.Load(t, "../docs/bootstrap.schema.json")
	files, _ := filepath.Glob("../examples/bootstrap/*.yaml")
	for _, path := range append(files, "default.yaml") {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, fault := range jsonschema.Validate(root, parsed(t, string(data))) {
			t.Errorf("%s: %s", path, fault)
		}
		c, err := Parse(path, data, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if len(c.Warnings) > 0 {
			t.Errorf("%s: warnings %q", path, c.Warnings)
		}
		for _, s := range c.Clusters.Static {
			if d := s.Deprecated(); len(d) > 0 {
				t.Errorf("%s: deprecated keys %q", path, d)
			}
		}
	}
	for text, want := range map[string]string{
		"statd: {}":                                    "statd: unknown key",
		"statsd: {keep_rejected: 1}":                   "statsd.keep_rejected: not of type [boolean null]",
		"statsd: {limits: {series: 0}}":                "statsd.limits.series: excluded value",
		"statsd: {events: {keep: 100001}}":             "statsd.events.keep: out of range",
		"admin: {mode: fast}":                          "admin.mode: not a listed value",
		"admin: {allow_paths: [{exakt: a}]}":           "admin.allow_paths[0].exakt: unknown key",
		"admin: {metrics_address: {pipe: {path: /s}}}": "admin.metrics_address.pipe: not of type [null]",
		"admin: {metrics_address: {pipe: null, socket_address: {address: a, port_value: 1}}}": "",
		"health_listeners: [{name: a}]":                              "health_listeners[0].address: missing",
		"stats_flush_interval: 5":                                    "stats_flush_interval: not of type [string null]",
		"stats_flush_interval: 5m":                                   "stats_flush_interval: does not match",
		"statsd: {ttl: null, parse: {}}":                             "",
		"stats_sinks: [{name: statsd, typed_config: {address: {}}}]": "",
		"admin: {limits: {headers: -1}}":                             "",
		"node: {metadata: {a: {b: [1]}}}":                            "",
		"static_resources: {clusters: [{}, 1]}":                      "static_resources.clusters[0].name: missing; static_resources.clusters[1]: not of type [object null]",
		"static_resources: {clusters: [{name: c, hosts: [{pipe: {path: /x}}], lb_policy: original_dst_lb}]}":               "",
		"static_resources: {clusters: [{name: c, lb_polycy: RANDOM}]}":                                                     "static_resources.clusters[0].lb_polycy: unknown key",
		"static_resources: {clusters: [{name: c, connect_timeout: 5}]}":                                                    "static_resources.clusters[0].connect_timeout: not of type [string null]",
		"static_resources: {clusters: [{name: c, metadata: {filter_metadata: {a: {b: [1]}}}, type: FAST}]}":                "static_resources.clusters[0].type: has none of the allowed forms",
		"static_resources: {clusters: [{name: c, transport_socket: {name: tls, typed_config: {'@type': x, sni: y}}}]}":     "",
		"dynamic_resources: {ads_config: {api_type: grpc, grpc_services: [{envoy_grpc: {cluster_name: x, authrity: y}}]}}": "dynamic_resources.ads_config.grpc_services[0].envoy_grpc.authrity: unknown key",
	} {
		if got := strings.Join(jsonschema.Validate(root, parsed(t, text)), "; "); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// parsed returns a YAML text as JSON values.
func parsed(t *testing.T, text string) any {
	t.Helper()
	var v any
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	return v
}
