package outlier

import (
	"encoding/json"
	"strconv"
	"time"
)

// eventType is the kind as in the event log.
func (k Kind) eventType() string {
	return [...]string{
		"CONSECUTIVE_5XX", "CONSECUTIVE_GATEWAY_FAILURE", "SUCCESS_RATE", "FAILURE_PERCENTAGE",
		"CONSECUTIVE_LOCAL_ORIGIN_FAILURE", "SUCCESS_RATE_LOCAL_ORIGIN", "FAILURE_PERCENTAGE_LOCAL_ORIGIN",
	}[k]
}

// loggedEvent is an event in the order of the log.
type loggedEvent struct {
	Type         string       `json:"type"`
	Timestamp    time.Time    `json:"timestamp"`
	SinceLast    string       `json:"secs_since_last_action,omitempty"`
	Cluster      string       `json:"cluster_name"`
	Upstream     string       `json:"upstream_url"`
	Action       string       `json:"action"`
	Ejections    uint64       `json:"num_ejections"`
	Enforced     bool         `json:"enforced"`
	SuccessRate  *loggedRates `json:"eject_success_rate_event,omitempty"`
	Consecutive  *struct{}    `json:"eject_consecutive_event,omitempty"`
	FailureShare *loggedRate  `json:"eject_failure_percentage_event,omitempty"`
}

// loggedRate is in whole percent.
type loggedRate struct {
	Host uint32 `json:"host_success_rate"`
}

type loggedRates struct {
	loggedRate
	Average   uint32 `json:"cluster_average_success_rate"`
	Threshold uint32 `json:"cluster_success_rate_ejection_threshold"`
}

// AppendJSON appends e as one line of the event log: a JSON object and a newline. A
// return has no kind, which the log writes as the first one.
func (e *Event) AppendJSON(dst []byte, cluster string) []byte {
	l := loggedEvent{
		Type: e.Kind.eventType(), Timestamp: e.Time.UTC().Truncate(time.Millisecond), Cluster: cluster, Upstream: e.Host.AddressText(),
		Action: "UNEJECT", Ejections: e.Ejections, Enforced: e.Enforced,
	}
	if e.SinceLast >= 0 {
		l.SinceLast = strconv.FormatInt(int64(e.SinceLast/time.Second), 10)
	}
	if e.Eject {
		l.Action = "EJECT"
		host := loggedRate{percent(e.Rate)}
		switch e.Kind {
		case SuccessRate, LocalOriginSuccessRate:
			l.SuccessRate = &loggedRates{host, percent(e.Average), percent(e.Threshold)}
		case FailurePercentage, LocalOriginFailurePercentage:
			l.FailureShare = &host
		default:
			l.Consecutive = &struct{}{}
		}
	}
	b, _ := json.Marshal(&l) // texts and numbers can always be written
	return append(append(dst, b...), '\n')
}

// percent truncates a rate to whole percent; thresholds can be below 0.
func percent(rate float64) uint32 {
	if !(rate > 0) {
		return 0
	}
	return uint32(min(rate, 100))
}
