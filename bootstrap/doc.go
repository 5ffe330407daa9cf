// Package bootstrap reads the configuration file of the server: YAML or JSON,
// checked in full, with defaults applied, into plain values.
//
//	cfg, err := bootstrap.Load(bootstrap.Source{Path: "/etc/proxy.yaml"}, bootstrap.Options{})
//	if err != nil {
//		return err // a *Errors: every error with file, line, column and field
//	}
//	fmt.Println(cfg.Admin.Address, cfg.Stats.FlushInterval)
//
// The field names match the bootstrap message that Envoy-compatible tools write,
// in snake_case or lowerCamelCase, plus the section "statsd" and
// some settings of the section "admin" of our own. Sections that describe
// upstream clusters are checked elsewhere: they come out as [Raw] nodes that
// still know their positions.
//
// A Config is immutable, so any number of goroutines can read it. The package
// keeps no state between calls.
package bootstrap
