package xds

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/statsd-admin/statsd-admin/upstream/config/decode"
)

// node is the message that identifies this process.
type node = corev3.Node

// maxProblem is the length limit of the error text in a refusal, in bytes.
const maxProblem = 16 << 10

// due returns the number of topics with a request to send. If there is none, it
// returns the time until one is due; 0 means never.
func (m *mux) due() (n int, wait time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	for _, t := range m.topics {
		if t.dueLocked(now) {
			n++
		} else if t.reply != nil {
			if d := t.reply.after.Sub(now); wait == 0 || d < wait {
				wait = d
			}
		}
	}
	return n, wait
}

// dueLocked reports whether a request is due. The mux's mu is held.
func (t *topic) dueLocked(now time.Time) bool {
	t.settled = t.settled && t.outdatedLocked()
	return t.settled || t.reply != nil && !now.Before(t.reply.after)
}

// outdatedLocked reports whether the requested names differ from the names known to
// the server. Entries of a wildcard kind have no subscribers. The mux's mu is held.
func (t *topic) outdatedLocked() bool {
	if !t.opened {
		return t.wantedLocked()
	}
	asking := 0
	for name, e := range t.entries {
		if len(e.subscribers) > 0 {
			if asking++; !t.asked[name] {
				return true
			}
		}
	}
	return asking != len(t.asked)
}

// next returns the first request that is due and marks it as sent. first marks the
// first request of the stream.
func (m *mux) next(first bool) proto.Message {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	for _, t := range m.topics {
		if !t.dueLocked(now) {
			continue
		}
		var rest *reply
		if t.reply != nil && t.reply.first != nil {
			rest, t.reply = t.reply, t.reply.first
			rest.first = nil
		}
		same := t.opened && !t.changed && !t.settled // as the names that the server knows
		q := m.messageLocked(t, first, same)
		t.opened, t.reply, t.settled = true, rest, false
		if same {
			return q
		}
		t.forgetLocked()
		if t.asked == nil {
			t.asked = make(map[string]bool)
		}
		clear(t.asked)
		if !t.kind.service().wildcard {
			for name := range t.entries {
				t.asked[name] = true
			}
		}
		return q
	}
	return nil
}

// namesLocked returns the requested names, sorted.
func (t *topic) namesLocked() []string {
	var names []string
	for name, e := range t.entries {
		if len(e.subscribers) > 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// messageLocked builds the request of a topic. same means that the server knows the
// requested names, so that a delta request has none. m.mu is held.
func (m *mux) messageLocked(t *topic, first, same bool) proto.Message {
	var who *node
	if first || m.nodeAll {
		who = m.node
	}
	var problem *statuspb.Status
	if t.reply != nil && t.reply.problem != "" {
		problem = &statuspb.Status{Code: int32(codes.InvalidArgument), Message: t.reply.problem}
	}
	if !m.delta {
		return &discoveryv3.DiscoveryRequest{
			VersionInfo: t.version, Node: who, ResourceNames: t.namesLocked(), TypeUrl: t.kind.typeURL(),
			ResponseNonce: t.nonce, ErrorDetail: problem,
		}
	}
	q := &discoveryv3.DeltaDiscoveryRequest{Node: who, TypeUrl: t.kind.typeURL(), ErrorDetail: problem}
	if t.reply != nil {
		q.ResponseNonce = t.reply.nonce
	}
	if same {
		return q
	}
	for name, e := range t.entries {
		if len(e.subscribers) > 0 && !t.asked[name] {
			q.ResourceNamesSubscribe = append(q.ResourceNamesSubscribe, name)
		}
	}
	slices.Sort(q.ResourceNamesSubscribe)
	for name := range t.asked {
		if e := t.entries[name]; e == nil || len(e.subscribers) == 0 {
			q.ResourceNamesUnsubscribe = append(q.ResourceNamesUnsubscribe, name)
		}
	}
	slices.Sort(q.ResourceNamesUnsubscribe)
	if !t.opened {
		for name, e := range t.entries {
			if e.version != "" && (t.kind.service().wildcard || len(e.subscribers) > 0) {
				if q.InitialResourceVersions == nil {
					q.InitialResourceVersions = make(map[string]string)
				}
				q.InitialResourceVersions[name] = e.version
			}
		}
	}
	return q
}

// summary returns the error text of a refusal with each error once; it is empty if
// there is none.
func summary(faults []fault) string {
	var b strings.Builder
	seen := make(map[string]bool)
	for _, f := range faults {
		text := f.err.Error()
		if seen[text] {
			continue
		}
		seen[text] = true
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		if room := maxProblem - b.Len(); len(text) > room {
			b.WriteString(text[:max(room, 0)])
			b.WriteString(" and more")
			break
		}
		b.WriteString(text)
	}
	return strings.ToValidUTF8(b.String(), "\uFFFD")
}

func unnamed(r *decode.Resource) error {
	return fmt.Errorf("xds: resource #%d of type %q has no known name", r.Index, r.TypeURL)
}

func duplicate(r *decode.Resource) error {
	return fmt.Errorf("xds: resource %q occurs twice in one response; the first is used", r.Name)
}

func unasked(r *decode.Resource) error {
	return fmt.Errorf("xds: resource %q was not requested", r.Name)
}

func misnamed(r *decode.Resource, name string) error {
	return fmt.Errorf("xds: resource %q states the name %q", r.Name, name)
}

func sortedNames(entries map[string]*entry) []string { return slices.Sorted(maps.Keys(entries)) }
