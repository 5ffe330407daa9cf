package logctl

// Names returns the names of the daemon's loggers in listing order.
func Names() []string {
	return []string{
		"admin", "assert", "config", "connection", "file", "filter", "hc", "http", "init", "io",
		"main", "misc", "runtime", "secret", "stats", "tap", "tracing", "upstream", "statsd",
	}
}
