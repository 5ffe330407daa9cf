package bootstrap

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/flush/history"
	"github.com/statsd-admin/statsd-admin/server"
	"github.com/statsd-admin/statsd-admin/server/layers"
	"go.yaml.in/yaml/v4"
)

// Config is a checked configuration with all defaults applied. It must not be
// changed.
type Config struct {
	Node    admin.Node
	Admin   Admin
	Stats   Stats
	Sinks   []Sink
	Runtime []RuntimeLayer // in order, later ones win; never empty
	StatsD  StatsD

	HealthListeners []server.HealthListener

	Clusters Clusters

	FlagsPath    string // directory of flag files such as "drain"; empty for none
	HeaderPrefix string // replaces "x-{product}" in header names; empty for the default
	LogFormat    string // pattern of application_log_config; empty when not set

	StaticResources  Raw // unset when absent
	DynamicResources Raw
	ClusterManager   Raw
	Root             Raw // the whole document as it was written, after merging

	UnknownFields []string // position and path of each field that was skipped (AllowUnknownFields)
	Warnings      []string // one line each, for the log

	product string // of Options
}

// Raw is a part of the document that is read elsewhere. Its nodes hold no
// aliases and no duplicate keys. They may be shared and must not be changed.
// The zero Raw stands for an absent field.
type Raw struct {
	Node *yaml.Node // nil when absent
	Path string     // field path, such as static_resources

	doc *document
}

// Position returns where n, a node of this part, was written.
func (r Raw) Position(n *yaml.Node) Position {
	if r.doc == nil {
		return Position{}
	}
	return r.doc.position(n)
}

const forever = time.Duration(math.MaxInt64)

func defaults(product string) *Config {
	return &Config{
		product: product,
		Admin:   defaultAdmin(product),
		Stats:   Stats{FlushInterval: 5 * time.Second, UseAllDefaultTags: true, HistoryBytes: history.DefaultBytes},
		StatsD:  defaultStatsD(),
	}
}

// decode fills c from the root of a document.
func (c *Config) decode(d *decoder, root *yaml.Node) {
	c.Root = Raw{Node: root, doc: d.doc}
	fields := []field{
		{"node", nodeFields(&c.Node)},
		{"admin", c.Admin.set},
		{"stats_config", c.Stats.setConfig},
		{"stats_flush_interval", duration(&c.Stats.FlushInterval, minFlushInterval, maxFlushInterval-1)},
		{"stats_flush_on_admin", c.Stats.setFlushOnAdmin},
		{"stats_eviction_interval", duration(&c.Stats.EvictionInterval, time.Millisecond, forever)},
		{"stats_sinks", list(&c.Stats.Sinks, func(s *StatsSink) setter { return s.set })},
		{"stats_server_version_override", c.Stats.setServerVersion},
		{"layered_runtime", c.setLayeredRuntime},
		{"runtime", c.setRuntime},
		{"static_resources", raw(&c.StaticResources)},
		{"dynamic_resources", raw(&c.DynamicResources)},
		{"cluster_manager", raw(&c.ClusterManager)},
		{"flags_path", text(&c.FlagsPath)},
		{"watchdog", watchdog},
		{"watchdogs", nested(field{"main_thread_watchdog", watchdog}, field{"worker_watchdog", watchdog})},
		{"header_prefix", headerName(&c.HeaderPrefix)},
		{"application_log_config", nested(field{"log_format", c.setLogFormat})},
		{"default_regex_engine", setRegexEngine},
		{"statsd", c.StatsD.set},
		{"health_listeners", c.setHealthListeners},
		{"sinks", list(&c.Sinks, func(s *Sink) setter { return s.set })},
	}
	for _, name := range withoutEffect {
		fields = append(fields, field{name, ignored})
	}
	if at := mappingRules(root); at != nil && !d.allowUnknown {
		d.errorf(at, "mappings", "these are mapping rules of statsd_exporter, not a configuration: name the file in statsd.mapping.file, or use it with --statsd.mapping-config")
		return
	}
	seen := d.message(root, "", fields)
	c.Admin.TapIDs = tapIDs(c.StaticResources.Node)
	c.Clusters.decode(d, c.StaticResources, c.DynamicResources, c.ClusterManager)
	c.Stats.check(d, seen)
	if n := len(c.Sinks) + len(c.Stats.Sinks); n > maxSinks {
		name := "sinks"
		if seen[name] == nil {
			name = "stats_sinks"
		}
		d.errorf(seen[name], name, "%d sinks are more than the limit of %d: each reports the metrics of all", n, maxSinks)
	}
	for i := range c.Stats.Sinks {
		c.Stats.Sinks[i].check(d, c.Clusters.Static)
	}
	for i := range c.Sinks {
		c.Sinks[i].check(d, c.Stats.FlushInterval, c.StatsD.Listeners)
	}
	d.oneOf(root, "", seen, false, "runtime", "layered_runtime")
	d.oneOf(root, "", seen, false, "watchdog", "watchdogs")
	for _, name := range []string{"watchdog", "watchdogs"} {
		if n, ok := seen[name]; ok {
			d.warnf(n, name, "accepted, but has no effect: work is spread over threads by the runtime, so there is none to watch")
		}
	}
	if len(c.Runtime) == 0 {
		c.Runtime = []RuntimeLayer{newLayer("admin", layers.Admin)}
	}
}

// mappingRules returns the key that a file of mapping rules has and a configuration has
// not, or nil.
func mappingRules(root *yaml.Node) *yaml.Node {
	if root.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i < len(root.Content); i += 2 {
		if root.Content[i].Value == "mappings" {
			return root.Content[i]
		}
	}
	return nil
}

// withoutEffect lists fields of the bootstrap message that other servers act
// on. They are accepted, so that an existing file starts, with a warning.
var withoutEffect = []string{
	"memory_allocator_manager", "overload_manager", "tracing", "bootstrap_extensions", "fatal_actions",
	"default_socket_interface", "certificate_provider_instances", "inline_headers", "perf_tracing_file_path",
	"dns_resolution_config", "typed_dns_resolver_config", "use_tcp_for_dns_lookups", "hds_config",
	"enable_dispatcher_stats", "config_sources", "default_config_source", "xds_delegate_extension",
	"xds_config_tracker_extension", "listener_manager", "grpc_async_client_manager_config", "node_context_params",
}

func nodeFields(n *admin.Node) setter {
	return nested(
		field{"id", text(&n.ID)},
		field{"cluster", text(&n.Cluster)},
		field{"locality", nested(
			field{"region", text(&n.Region)},
			field{"zone", text(&n.Zone)},
			field{"sub_zone", text(&n.SubZone)},
		)},
		field{"metadata", structure(&n.Metadata)},
		field{"client_features", texts(&n.ClientFeatures)},
		field{"dynamic_parameters", accepted},
		field{"listening_addresses", accepted},
		field{"user_agent_name", accepted},
		field{"user_agent_version", accepted},
		field{"user_agent_build_version", accepted},
		field{"build_version", accepted},
		field{"extensions", accepted},
	)
}

// watchdog checks the settings of a watchdog, which have no effect.
func watchdog(d *decoder, n *yaml.Node, path string) {
	var timeout time.Duration
	var percent float64
	d.message(n, path, []field{
		{"miss_timeout", duration(&timeout, 0, forever)},
		{"megamiss_timeout", duration(&timeout, 0, forever)},
		{"kill_timeout", duration(&timeout, 0, forever)},
		{"multikill_timeout", duration(&timeout, 0, forever)},
		{"multikill_threshold", nested(field{"value", number(&percent, 0, 100)})},
		{"max_kill_timeout_jitter", duration(&timeout, 0, forever)},
		{"actions", ignored},
	})
}

// setLogFormat reads a text pattern, or a mapping that becomes a JSON pattern.
func (c *Config) setLogFormat(d *decoder, n *yaml.Node, path string) {
	var members map[string]any
	seen := d.message(n, path, []field{
		{"text_format", text(&c.LogFormat)},
		{"json_format", structure(&members)},
	})
	if d.oneOf(n, path, seen, true, "text_format", "json_format") == "json_format" {
		c.LogFormat = jsonPattern(members)
		for _, flag := range []string{"%v", "%_"} {
			if strings.Contains(c.LogFormat, flag) {
				d.errorf(seen["json_format"], join(path, "json_format"), "%q would break the JSON form; use %%j for the message", flag)
			}
		}
	}
}

// setRegexEngine accepts the one engine that there is.
func setRegexEngine(d *decoder, n *yaml.Node, path string) {
	var name string
	seen := d.message(n, path, []field{
		{"name", text(&name)},
		{"typed_config", func(d *decoder, n *yaml.Node, path string) {
			d.typedConfig(n, path, map[string][]field{"GoogleRE2": nil})
		}},
	})
	known := []string{"envoy.regex_engines.google_re2", d.product + ".regex_engines.google_re2"}
	if _, ok := seen["typed_config"]; !ok && !slices.Contains(known, name) {
		d.errorf(n, join(path, "name"), "%q is not a known engine; known: %s", name, known[1])
	}
}
