package admin

import (
	"bytes"
	"regexp"
	"testing"

	adminv3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/statsd-admin/statsd-admin/internal/wire"
)

// ownMembers are members of the interface that the messages lack.
var ownMembers = regexp.MustCompile(`(?m)^ {2}"hot_restart_version": (true|false),\n`)

// TestJSONIsTheMessage decodes every response that is a message, and compares it with
// the canonical encoding of the message.
func TestJSONIsTheMessage(t *testing.T) {
	tests := []struct {
		target   string
		message  proto.Message
		defaults wire.Defaults
	}{
		{"/certs", &adminv3.Certificates{}, wire.ShowDefaults},
		{"/clusters?format=json", &adminv3.Clusters{}, wire.OmitDefaults},
		{"/contention", &adminv3.MutexStats{}, wire.ShowDefaults},
		{"/init_dump", &adminv3.UnreadyTargetsDumps{}, wire.OmitDefaults},
		{"/listeners?format=json", &adminv3.Listeners{}, wire.OmitDefaults},
		{"/memory", &adminv3.Memory{}, wire.ShowDefaults},
		{"/server_info", &adminv3.ServerInfo{}, wire.ShowDefaults},
	}
	bare := newWorld()
	bare.clusters = nil
	empty := bare.sources()
	empty.Listeners, empty.Certificates, empty.Unready, empty.Info = nil, nil, nil, nil
	for _, src := range []Sources{newWorld().sources(), empty} {
		s := newServer(t, Config{Sources: src})
		for _, tt := range tests {
			body := s.Request("GET", tt.target, nil).Body
			if _, ok := tt.message.(*adminv3.ServerInfo); ok {
				if !ownMembers.Match(body) {
					t.Errorf("%s lacks what it has beyond the message: %s", tt.target, body)
				}
				body = ownMembers.ReplaceAll(body, nil)
			}
			proto.Reset(tt.message)
			checkMessage(t, tt.target, body, tt.message, tt.defaults)
		}
	}
}

// checkMessage decodes a JSON document as a message and checks that encoding it
// yields the same document.
func checkMessage(t *testing.T, name string, body []byte, m proto.Message, d wire.Defaults) {
	t.Helper()
	if err := protojson.Unmarshal(body, m); err != nil {
		t.Errorf("%s: %v in %s", name, err, body)
		return
	}
	var w wire.Writer
	w.Message(m, d)
	if got := w.Bytes(); !bytes.Equal(got, body) {
		t.Errorf("%s: got\n%s\nthe message is written as\n%s", name, body, got)
	}
}
