// Package eventlog writes what an outlier detector does to hosts into a file, one
// JSON object per line.
//
//	l, err := eventlog.Open("/var/log/outliers.log")
//	go l.Run(ctx)
//	l.Ejection(&eventlog.Ejection{Cluster: "backend", Host: "10.0.0.1:80", Eject: true})
//
// All methods are safe for concurrent use, and none waits for the disk but those
// that say so.
package eventlog

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/logfile"
)

// Ejection is a host that was taken out of a cluster for a time, or came back.
type Ejection struct {
	Time     time.Time
	Cluster  string
	Host     string // its address
	Eject    bool   // false: it came back, and only Ejections and SinceLast say more
	Kind     string // of the detection, such as "consecutive_5xx"
	Enforced bool   // false: it was noted only
	// Ejections is how often the host was ejected, and SinceLast the time since
	// it was, or since it came back; negative if it never did.
	Ejections uint64
	SinceLast time.Duration
	// HostRate, Average and Threshold are percentages, for detections by rates;
	// negative if they are not known.
	HostRate, Average, Threshold float64
}

// Log is a file of events. Make it with [Open].
type Log struct{ file *logfile.File }

const (
	flushBytes    = 64 << 10
	flushInterval = time.Second
)

// Open opens the file, which is made if need be. See the rules of all log files:
// no symbolic links, mode 0640.
func Open(path string) (*Log, error) {
	f, err := logfile.Open(path, logfile.Options{FlushBytes: flushBytes, FlushInterval: flushInterval})
	if err != nil {
		return nil, err
	}
	return &Log{f}, nil
}

// Run writes to the disk until ctx is done, and then the rest.
func (l *Log) Run(ctx context.Context) error { return l.file.Run(ctx) }

// Reopen opens the path again, as after a rotation. It waits for the disk.
func (l *Log) Reopen() error { return l.file.Reopen() }

// Close writes what is left and closes the file. It waits for the disk.
func (l *Log) Close() error { return l.file.Close() }

// line is an ejection as it is written. The order of fields is that of the file.
type line struct {
	Type      string  `json:"type,omitempty"`
	Timestamp string  `json:"timestamp"`
	Since     *string `json:"secs_since_last_action,omitempty"`
	Cluster   string  `json:"cluster_name"`
	Host      string  `json:"upstream_url"`
	Action    string  `json:"action"`
	Ejections uint64  `json:"num_ejections"`
	Enforced  bool    `json:"enforced"`

	Rate        *rate     `json:"eject_success_rate_event,omitempty"`
	Percentage  *rate     `json:"eject_failure_percentage_event,omitempty"`
	Consecutive *struct{} `json:"eject_consecutive_event,omitempty"`
}

type rate struct {
	Host      *float64 `json:"host_success_rate,omitempty"`
	Average   *float64 `json:"cluster_average_success_rate,omitempty"`
	Threshold *float64 `json:"cluster_success_rate_ejection_threshold,omitempty"`
}

// Ejection writes an event. One that finds the buffer full, as behind a disk that
// hangs, is dropped.
func (l *Log) Ejection(e *Ejection) {
	out := line{
		Timestamp: e.Time.UTC().Format("2006-01-02T15:04:05.000Z"), Cluster: e.Cluster, Host: e.Host, Action: "UNEJECT",
		Ejections: e.Ejections, Enforced: e.Enforced,
	}
	if e.SinceLast >= 0 {
		s := strconv.FormatInt(int64(e.SinceLast/time.Second), 10)
		out.Since = &s
	}
	if e.Eject {
		out.Action, out.Type = "EJECT", strings.ToUpper(e.Kind)
		switch {
		case strings.HasSuffix(e.Kind, "success_rate"):
			out.Rate = &rate{known(e.HostRate), known(e.Average), known(e.Threshold)}
		case strings.HasSuffix(e.Kind, "failure_percentage"):
			out.Percentage = &rate{Host: known(e.HostRate)}
		default:
			out.Consecutive = &struct{}{}
		}
	}
	text, err := json.Marshal(&out)
	if err != nil {
		return // no text or number here is without a form in JSON
	}
	_, _ = l.file.Write(append(text, '\n')) // a buffered file counts what it drops
}

// known returns a percentage, nil if there is none.
func known(x float64) *float64 {
	if !(x >= 0) {
		return nil
	}
	return &x
}
