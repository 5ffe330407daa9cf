package lifecycle

// State is the state of a server. The numbers are the values of the gauge server.state.
type State uint8

// The states. While a server is not initialized, that state takes precedence
// over a failed health check.
const (
	Live            State = 0 // initialized, health check not failed
	Draining        State = 1 // initialized, health check failed
	PreInitializing State = 2 // waits for clusters before anything else
	Initializing    State = 3 // waits for init targets
)

// String returns the name of s as the interface shows it.
func (s State) String() string {
	switch s {
	case Live:
		return "LIVE"
	case Draining:
		return "DRAINING"
	case PreInitializing:
		return "PRE_INITIALIZING"
	case Initializing:
		return "INITIALIZING"
	}
	return "UNKNOWN"
}
