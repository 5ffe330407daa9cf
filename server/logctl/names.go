package logctl

// Names returns the loggers of the daemon in the order in which they are
// listed.
func Names() []string {
	return []string{
		"admin", "assert", "config", "connection", "file", "filter", "hc", "http", "init", "io",
		"main", "misc", "runtime", "secret", "stats", "tap", "tracing", "upstream", "statsd",
	}
}
