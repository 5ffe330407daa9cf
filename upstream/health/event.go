package health

import (
	"encoding/json"
	"time"

	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/host"
	"github.com/statsd-admin/statsd-admin/upstream/status"
)

// EventKind is the kind of an [Event].
type EventKind uint8

// The kinds of events.
const (
	Ejected          EventKind = iota // the host failed
	Added                             // the host is healthy again, or for the first time
	CheckFailed                       // the first check failed, or any if all are reported
	CheckPassed                       // a check passed, if all are reported
	TurnedDegraded                    // the host calls itself degraded
	NoLongerDegraded                  // it no longer does
)

// Event is an entry of the event log.
type Event struct {
	Kind    EventKind
	Time    time.Time
	Host    *host.Host
	Failure Kind // of Ejected and CheckFailed
	First   bool // of Added and CheckFailed: it was the first check of the host
}

// events returns the log entries of an outcome. s.mu must be held.
func (s *session) events(o Outcome, before, after status.Flags, first bool) []Event {
	var out []Event
	add := func(k EventKind, failure Kind, first bool) {
		out = append(out, Event{Kind: k, Time: time.Now(), Host: s.host, Failure: failure, First: first})
	}
	turned := func(f status.Flags) (on, off bool) { return after&^before&f != 0, before&^after&f != 0 }
	failed, healthy := turned(status.FailedActiveHC)
	degraded, recovered := turned(status.DegradedActiveHC)
	if failed {
		add(Ejected, o.Kind, false)
	}
	if o.Kind != Passed && (first || s.k.c.Check.AlwaysLogFailures) {
		add(CheckFailed, o.Kind, first)
	}
	if healthy {
		add(Added, 0, first)
	}
	if o.Kind == Passed && s.k.c.Check.AlwaysLogSuccess {
		add(CheckPassed, 0, false)
	}
	if degraded {
		add(TurnedDegraded, 0, false)
	}
	if recovered {
		add(NoLongerDegraded, 0, false)
	}
	return out
}

// loggedEvent is an event in the order of the log.
type loggedEvent struct {
	Type      string         `json:"health_checker_type"`
	Host      any            `json:"host"`
	Cluster   string         `json:"cluster_name"`
	Ejected   *loggedFailure `json:"eject_unhealthy_event,omitempty"`
	Added     *loggedFirst   `json:"add_healthy_event,omitempty"`
	Timestamp time.Time      `json:"timestamp"`
	Failed    *struct {
		loggedFailure
		loggedFirst
	} `json:"health_check_failure_event,omitempty"`
	Degraded  *struct{}       `json:"degraded_healthy_host,omitempty"`
	Recovered *struct{}       `json:"no_longer_degraded_host,omitempty"`
	Locality  *loggedLocality `json:"locality,omitempty"`
	Passed    *struct{}       `json:"successful_health_check_event,omitempty"`
}

type loggedFailure struct {
	Type string `json:"failure_type"`
}

type loggedFirst struct {
	First bool `json:"first_check"`
}

type loggedLocality struct {
	Region  string `json:"region"`
	Zone    string `json:"zone"`
	SubZone string `json:"sub_zone"`
}

type loggedSocket struct {
	Socket struct {
		Protocol string `json:"protocol"`
		Address  string `json:"address"`
		Port     uint16 `json:"port_value"`
	} `json:"socket_address"`
}

type loggedPipe struct {
	Pipe struct {
		Path string `json:"path"`
	} `json:"pipe"`
}

// AppendJSON appends e as one line of the event log: a JSON object and a newline. kind
// is the kind of check.
func (e *Event) AppendJSON(dst []byte, cluster string, kind config.HealthCheckKind) []byte {
	l := loggedEvent{
		Type: [...]string{"HTTP", "TCP", "GRPC", "CUSTOM"}[kind], Host: loggedAddress(e.Host.Address()), Cluster: cluster,
		Timestamp: e.Time.UTC().Truncate(time.Millisecond),
	}
	if at := e.Host.Locality(); at != (config.Locality{}) {
		l.Locality = &loggedLocality{at.Region, at.Zone, at.SubZone}
	}
	failure, first := loggedFailure{e.Failure.failureType()}, loggedFirst{e.First}
	switch e.Kind {
	case Ejected:
		l.Ejected = &failure
	case Added:
		l.Added = &first
	case CheckFailed:
		l.Failed = &struct {
			loggedFailure
			loggedFirst
		}{failure, first}
	case CheckPassed:
		l.Passed = &struct{}{}
	case TurnedDegraded:
		l.Degraded = &struct{}{}
	case NoLongerDegraded:
		l.Recovered = &struct{}{}
	}
	b, _ := json.Marshal(&l) // texts and numbers can always be written
	return append(append(dst, b...), '\n')
}

func loggedAddress(a config.Address) any {
	if a.Pipe != "" {
		var p loggedPipe
		p.Pipe.Path = a.Pipe
		return &p
	}
	var s loggedSocket
	s.Socket.Protocol, s.Socket.Address, s.Socket.Port = "TCP", a.IP.Addr().String(), a.IP.Port()
	return &s
}

// failureType is the kind of a failure as in the event log.
func (k Kind) failureType() string {
	switch k {
	case Passive:
		return "PASSIVE"
	case Network, Local:
		return "NETWORK"
	case Timeout:
		return "NETWORK_TIMEOUT"
	}
	return "ACTIVE"
}
