package transport

import (
	"testing"

	"github.com/statsd-admin/statsd-admin/certinfo"
	"github.com/statsd-admin/statsd-admin/upstream/config"
)

// TestClosedContextsReadNothing: a reload that began before the context was closed neither
// fails nor shows certificates again.
func TestClosedContextsReadNothing(t *testing.T) {
	var shown certinfo.Registry
	c := &tlsContext{f: New(Config{Registry: &shown}), t: &config.TLS{TLSCommon: config.TLSCommon{Validation: &config.Validation{
		TrustedCA: config.Data{Kind: config.DataFile, Name: t.TempDir() + "/none.pem"},
	}}}}
	if err := c.load(); err == nil {
		t.Error("a missing file was read")
	}
	c.close()
	if err := c.load(); err != nil {
		t.Error(err)
	}
	c.t = &config.TLS{}
	if err := c.load(); err != nil || len(shown.List()) != 0 {
		t.Errorf("%v; %v is shown", err, shown.List())
	}
}
