package configdump

import (
	"bytes"
	"encoding/json"
	"iter"
	"maps"
	"math"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	adminv3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/statsd-admin/statsd-admin/admin/dump"
	"github.com/statsd-admin/statsd-admin/internal/golden"
	"github.com/statsd-admin/statsd-admin/internal/wire"
	"github.com/statsd-admin/statsd-admin/server/listeners"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/host"
	"github.com/statsd-admin/statsd-admin/upstream/status"
)

func at() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 89_999_999, time.UTC) }

// whole returns the message of a section including all lists.
func whole(s Section) proto.Message {
	m := proto.Clone(s.Message)
	for field, list := range s.Lists {
		fd := m.ProtoReflect().Descriptor().Fields().ByName(protoreflect.Name(field))
		for _, element := range list {
			m.ProtoReflect().Mutable(fd).List().Append(protoreflect.ValueOfMessage(element.ProtoReflect()))
		}
	}
	return m
}

// render writes sections like a dump, secrets included, and checks that they can be
// decoded.
func render(t *testing.T, sections ...Section) []byte {
	t.Helper()
	var w wire.Writer
	w.BeginObject()
	w.Key("configs").BeginList()
	for _, s := range sections {
		w.Packed(whole(s))
	}
	w.EndList()
	w.EndObject()
	body := bytes.Clone(w.Bytes())
	if err := protojson.Unmarshal(body, &adminv3.ConfigDump{}); err != nil {
		t.Errorf("%v in %s", err, body)
	}
	return body
}

func clusters(list ...Cluster) iter.Seq[Cluster] { return slices.Values(list) }

func message(name string) Cluster {
	return Cluster{Name: name, Message: packed(&clusterv3.Cluster{Name: name}), Updated: at()}
}

func TestClusters(t *testing.T) {
	changed := message("c")
	changed.Version, changed.Failure = "v1", &Failure{Message: message("x").Message, At: at().Add(time.Hour), Details: "no", Version: "v2"}
	refused := Cluster{Name: "d", Failure: &Failure{At: at(), Details: "never", Version: "v3"}}
	section := Clusters("v2", clusters(message("a"), message("b")), clusters(changed), clusters(refused))
	golden.Check(t, "clusters", render(t, section))
	golden.Check(t, "clusters-none", render(t, Clusters("", clusters(), clusters(), clusters())))
	names := []string{}
	for name := range section.Lists["static_clusters"] {
		names = append(names, name)
		break // must not go on
	}
	if !slices.Equal(names, []string{"a"}) {
		t.Errorf("names %q", names)
	}
}

// TestElementsAreOwn modifies the elements of a section: the next reader does not see
// it.
func TestElementsAreOwn(t *testing.T) {
	section := Clusters("", clusters(message("a")), clusters(), clusters())
	for range 2 {
		for _, m := range section.Lists["static_clusters"] {
			c, ok := m.(*adminv3.ClustersConfigDump_StaticCluster)
			if !ok || c.Cluster.GetTypeUrl() == "" {
				t.Fatalf("element %v", m)
			}
			proto.Reset(c.Cluster)
			proto.Reset(c)
		}
	}
}

func TestEndpoints(t *testing.T) {
	ip := func(s string) config.Address { return config.Address{IP: netip.MustParseAddrPort(s)} }
	set := func(priority uint32, l config.Locality, specs ...host.Spec) *host.Set {
		s := &host.Set{Priority: priority, Localities: []host.LocalitySet{{Locality: l}}}
		for _, spec := range specs {
			s.Localities[0].Hosts = append(s.Localities[0].Hosts, host.New(spec))
		}
		return s
	}
	weighted := set(1, config.Locality{Region: "r", SubZone: "s"}, host.Spec{Address: ip("10.0.0.3:80")})
	weighted.LocalityWeighted, weighted.Localities[0].Weight = true, 7
	section := Endpoints(slices.Values([]Assignment{
		{Name: "plain", Sets: []*host.Set{
			set(0, config.Locality{Zone: "z"},
				host.Spec{Address: ip("10.0.0.1:80"), Additional: []config.Address{ip("[::1]:81"), ip("10.0.0.9:80")}},
				host.Spec{Address: ip("10.0.0.2:80"), HealthCheckAddress: ip("10.0.0.2:81"), Hostname: "h", HealthCheckHostname: "check", EDS: status.DegradedEDSHealth, Weight: 2,
					Metadata: map[string]map[string]any{"net.example": {"a": 1.0}, "odd": {"a": make(chan int)}}},
				host.Spec{Address: ip("[::1]:80"), HealthCheckAddress: ip("[::2]:80"), EDS: status.FailedEDSHealth},
				host.Spec{Address: ip("10.0.0.3:80"), HealthCheckAddress: ip("10.0.0.3:80"), Weight: 3},
				host.Spec{Address: config.Address{Pipe: "/run/a"}, HealthCheckAddress: config.Address{Pipe: "/run/a"}}),
			{Priority: 1}, weighted,
		}},
		{Name: "apart", Apart: true, Sets: []*host.Set{
			{}, set(2, config.Locality{}, host.Spec{Address: ip("10.0.0.4:80")}, host.Spec{Address: ip("10.0.0.5:80")}),
			set(3, config.Locality{}, host.Spec{Address: ip("10.0.0.6:80")}),
			{Priority: 4, Localities: []host.LocalitySet{{Hosts: []*host.Host{host.New(host.Spec{Address: ip("10.0.0.7:80")})}}, {Hosts: []*host.Host{host.New(host.Spec{Address: ip("10.0.0.8:80")})}}}},
		}},
		{Name: "all-dropped", DropPercent: math.Inf(1)},
		{Name: "some-dropped", DropPercent: 0.25},
	}), slices.Values([]Assignment{{Name: "service", Overprovisioning: 100, DropPercent: 12.5}}))
	golden.Check(t, "endpoints", render(t, section))
	nothing, some := slices.Values([]Assignment(nil)), slices.Values([]Assignment{{Name: "a"}, {Name: "b"}})
	if s := Endpoints(nothing, nothing); s.Message != nil {
		t.Errorf("without clusters there is the section %v", s)
	}
	for _, s := range []Section{Endpoints(some, nothing), Endpoints(nothing, some)} {
		var names []string
		for _, list := range s.Lists {
			for name := range list {
				names = append(names, name)
				break // must not go on
			}
		}
		if s.Message == nil || !slices.Equal(names, []string{"a"}) {
			t.Errorf("clusters of one kind: %v, %q", s.Message, names)
		}
	}
}

func TestListeners(t *testing.T) {
	ip := func(s string) config.Address { return config.Address{IP: netip.MustParseAddrPort(s)} }
	golden.Check(t, "listeners", render(t, Listeners([]listeners.Listener{
		{Name: "in", Direction: listeners.Inbound, Addresses: []config.Address{ip("0.0.0.0:1"), ip("[::]:1")}},
		{Name: "out", Direction: listeners.Outbound, Addresses: []config.Address{{Pipe: "/run/l"}}},
		{Name: "datagrams", Protocol: listeners.UDP, Addresses: []config.Address{ip("127.0.0.1:8125")}},
		{Name: "nowhere"},
	}, at())))
	odd, ok := Listeners([]listeners.Listener{{Name: "\xff"}}, at()).Message.(*adminv3.ListenersConfigDump)
	if !ok || len(odd.StaticListeners) != 1 || odd.StaticListeners[0].Listener != nil {
		t.Errorf("a name that no message can hold: %v", odd)
	}
}

func TestUsualSections(t *testing.T) {
	var sections []Section
	for _, key := range []string{"route_scopes", "routes", "secrets"} {
		section, ok := Usual()[key]
		if !ok {
			t.Fatalf("no section %s", key)
		}
		section.Key = key
		sections = append(sections, section)
	}
	golden.Check(t, "usual", render(t, sections...))
}

// file is a bootstrap file with known, unknown and invalid fields.
func file() map[string]any {
	object := func(pairs ...any) map[string]any {
		m := make(map[string]any)
		for i := 0; i+1 < len(pairs); i += 2 {
			if name, ok := pairs[i].(string); ok {
				m[name] = pairs[i+1]
			}
		}
		return m
	}
	certificate := object("privateKey", object("inline_string", "hush"), "pkcs12", object("own", "hush", "inline_bytes", "aHVzaA=="), "own", 1.0)
	return object(
		"node", object("id", "n", "metadata", object("team", "edge", "size", 3.0), "dynamic_parameters", object("x", object("params", object("a", "b"), "own", true))),
		"admin", object("address", object("socket_address", object("address", "127.0.0.1", "port_value", 9901.0)), "mode", "read_only",
			"access_log", []any{object("name", "file", "typed_config", object("@type", "type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog", "path", "/a"))},
			"auth", object("tokens", []any{"role:digest"}), "profile_path", nil),
		"static_resources", object("clusters", []any{
			object("name", "a", "type", "strict_dns", "lb_policy", "ORIGINAL_DST_LB", "connect_timeout", "0.25s",
				"transport_socket", object("name", "tls", "typed_config", object(
					"@type", "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext",
					"common_tls_context", object("tls_certificates", []any{certificate})))),
			object("name", "b", "hosts", []any{object("pipe", object("path", "/run/b"))}, "typed_extension_protocol_options", object(
				"known", object("@type", "type.googleapis.com/google.protobuf.Struct", "value", object("a", "b")),
				"unknown", object("@type", "type.googleapis.com/no.such.Type", "password", "hush", "size", 1.0))),
		}),
		"stats_flush_interval", "soon",
		"layered_runtime", object("layers", []any{object("name", "s", "static_layer", object("a.token", "hush", "b", true))}),
		"stats_sinks", object("wrong", true),
		"statsd", object("listeners", []any{object("address", "udp://:8125")}, "api_key", "hush"),
	)
}

func TestBootstrap(t *testing.T) {
	message, settings := Bootstrap(file(), at())
	body := render(t, message, settings)
	golden.Check(t, "bootstrap", body)
	var w wire.Writer
	w.Packed(settings.Message)
	if shown := string(w.Bytes()); strings.Contains(shown, "hush") || strings.Contains(shown, "role:digest") || strings.Contains(shown, "aHVzaA") {
		t.Errorf("the settings hold a secret: %s", shown)
	}
	message, settings = Bootstrap(nil, time.Time{})
	golden.Check(t, "bootstrap-none", render(t, message))
	if settings.Message != nil {
		t.Errorf("no file has the settings %v", settings.Message)
	}
}

// TestBootstrapSplits expects each value in the message if a field can hold it, else in
// the settings.
func TestBootstrapSplits(t *testing.T) {
	for text, want := range map[string][2]string{
		`{"admin":{"mode":"x"}}`:                        {`{"admin":{}}`, `{"admin":{"mode":"x"}}`},
		`{"admin":null}`:                                {`{}`, ``},
		`{"node":3}`:                                    {`{}`, `{"node":"cannot be shown"}`},
		`{"node":{"dynamic_parameters":7}}`:             {`{"node":{}}`, `{"node":{"dynamic_parameters":7}}`},
		`{"node":{"id":"a","metadata":{"own":1}}}`:      {`{"node":{"id":"a","metadata":{"own":1}}}`, ``},
		`{"staticResources":{"clusters":[{"type":1}]}}`: {`{"static_resources":{"clusters":[{"type":"STRICT_DNS"}]}}`, ``},
		`{"static_resources":{"clusters":[{"type":"eds"},{"type":"none"}]}}`: {`{"static_resources":{"clusters":[{"type":"EDS"},{}]}}`, `{"static_resources":{"clusters":[{},{"type":"none"}]}}`},
		`{"stats_sinks":[null,{"name":"a"}]}`:                                {`{"stats_sinks":[{"name":"a"}]}`, ``},
		`{"stats_sinks":[{"name":"a","typed_config":"x"}]}`:                  {`{"stats_sinks":[{"name":"a"}]}`, `{"stats_sinks":[{"typed_config":"x"}]}`},
		`{"stats_sinks":[{"typed_config":{"@type":"a/google.protobuf.Duration","value":"1s"}}]}`: {
			`{"stats_sinks":[{"typed_config":{"@type":"a/google.protobuf.Duration","value":"1s"}}]}`, ``},
		`{"stats_sinks":[{"typed_config":{"@type":"a/envoy.config.core.v3.Node","id":"n","own":1}}]}`: {
			`{"stats_sinks":[{"typed_config":{"@type":"a/envoy.config.core.v3.Node","id":"n"}}]}`, `{"stats_sinks":[{"typed_config":{"own":1}}]}`},
	} {
		message, settings := Bootstrap(parse(text), at())
		var got [2]string
		for i, m := range []proto.Message{message.Message, settings.Message} {
			if m == nil {
				continue
			}
			if d, ok := m.(*adminv3.BootstrapConfigDump); ok {
				m = d.Bootstrap
			}
			long, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
			var short bytes.Buffer
			if err != nil || json.Compact(&short, long) != nil {
				t.Fatal(err)
			}
			got[i] = short.String()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// FuzzBootstrap uses any JSON as a bootstrap file: the messages survive a round trip,
// and the settings need no further redaction.
func FuzzBootstrap(f *testing.F) {
	for _, seed := range []string{`{}`, `{"node":{"id":1}}`, `{"admin":{"own":{"token":"x"}}}`, `{"static_resources":{"clusters":[{"hosts":[]},null,3]}}`,
		`{"stats_sinks":[{"typed_config":{"@type":"type.googleapis.com/google.protobuf.Duration","value":"1s"}}]}`,
		`{"stats_sinks":[{"typed_config":{"@type":"x","value":[1e999]}}]}`, `{"node":{"metadata":[]},"layered_runtime":{"layers":[{"static_layer":{"a":{"b":[null]}}}]}}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		tree := parse(text)
		message, settings := Bootstrap(tree, at())
		sections := []Section{message}
		if settings.Message != nil {
			sections = append(sections, settings)
			if again := (wire.Redactor{Untyped: true}).Redact(settings.Message); !proto.Equal(again, settings.Message) {
				t.Errorf("settings %v should be %v", settings.Message, again)
			}
		}
		render(t, sections...)
	})
}

func parse(text string) map[string]any {
	var tree map[string]any
	if json.Unmarshal([]byte(text), &tree) != nil {
		return nil
	}
	return tree
}

// TestVersionsAndTimes expects the version and the time of each section and resource, and
// none where the message has none.
func TestVersionsAndTimes(t *testing.T) {
	a := message("a")
	a.Version = "v1"
	boot, _ := Bootstrap(map[string]any{}, at())
	list := Clusters("v2", clusters(a), clusters(a, Cluster{Name: "b", Message: a.Message}), clusters())
	boot.Key, list.Key = "bootstrap", "clusters"
	sections := Source(func(bool) []Section { return []Section{boot, list} }).Sections(false)
	updated := at().Truncate(time.Millisecond)
	if s := sections[0]; s.Version != "" || !s.Updated.Equal(updated) {
		t.Errorf("bootstrap: %q, %v", s.Version, s.Updated)
	}
	if s := sections[1]; s.Version != "v2" || !s.Updated.IsZero() {
		t.Errorf("clusters: %q, %v", s.Version, s.Updated)
	}
	if got, want := [][]string{sections[0].Fields, sections[1].Fields}, [][]string{{"bootstrap", "last_updated"}, {"version_info"}}; !reflect.DeepEqual(got, want) {
		t.Errorf("fields that are no lists: %q, want %q", got, want)
	}
	got := map[string][]dump.Resource{}
	for _, l := range sections[1].Lists {
		got[l.Field] = slices.Collect(l.Resources)
		for range l.Resources {
			break // must not go on
		}
	}
	want := map[string][]dump.Resource{"static_clusters": {{Name: "a", Updated: updated}},
		"dynamic_active_clusters": {{Name: "a", Version: "v1", Updated: updated}, {Name: "b"}}, "dynamic_warming_clusters": nil}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestRefusedUpdates lists the resources whose last update was refused, also those with an
// accepted version, and none of lists that cannot have any.
func TestRefusedUpdates(t *testing.T) {
	active := message("c")
	active.Failure = &Failure{Details: "no"}
	sections := Source(func(bool) []Section {
		return []Section{Clusters("v2", clusters(message("a")), clusters(message("b"), active, Cluster{Name: "e", Failure: &Failure{Details: "nor this"}}), clusters(Cluster{Name: "d", Failure: &Failure{Details: "never"}}))}
	}).Sections(false)
	got := map[string]string{}
	for _, l := range sections[0].Lists {
		if l.Refused == nil {
			got[l.Field] = "none"
			continue
		}
		for name, why := range l.Refused {
			got[l.Field] += name + ": " + why + ";"
		}
		for range l.Refused {
			break // must not go on
		}
	}
	want := map[string]string{"static_clusters": "none", "dynamic_active_clusters": "c: no;e: nor this;", "dynamic_warming_clusters": "d: never;"}
	if !maps.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
