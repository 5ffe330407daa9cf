package arch

// exception is a place that breaks a rule for a reason.
type exception struct {
	rule   string // the rule's name
	room   string
	what   string // what the finding is about, as the failure shows it
	reason string
}

// exceptions is the one way to opt out of a rule. An entry that no longer
// excuses anything is an error too.
func exceptions() []exception {
	return []exception{
		{"imports", "cmd/statsd-admin", "server/logctl", "the log flags take the level and component names that logctl knows"},
		{"flags", "internal/golden", "flag", "-update is a flag of the test binaries, which have no cmd"},
		{"state", "internal/golden", "update", "the value of that flag"},
	}
}
