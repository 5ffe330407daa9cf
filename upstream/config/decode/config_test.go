package decode_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/config/decode"
	"github.com/statsd-admin/statsd-admin/upstream/config/v2form"
)

// newDecoder returns a decoder that knows both forms and some extensions.
func newDecoder() *decode.Decoder {
	return decode.NewDecoder(options())
}

func options() decode.Options {
	return decode.Options{
		V2:              v2form.Messages(),
		ClusterTypes:    map[string]bool{"own.balancer": true, "no.balancer": false},
		ProtocolFilters: map[string]bool{"takes.options": true, "takes.none": false},
		HealthCheckers:  []string{"known.checker"},
	}
}

// compare compares compiled values.
var compare = cmp.Options{cmp.Comparer(func(a, b netip.Addr) bool { return a == b })}

// mustParse decodes a text without errors.
func mustParse(t *testing.T, text string) *decode.ParsedCluster {
	t.Helper()
	p, err := newDecoder().ClusterText("", []byte(text), config.FormUnknown)
	if err != nil {
		t.Fatalf("ClusterText(%q): %v", text, err)
	}
	return p
}

// faults returns the messages of an error without positions, as
// "path: text".
func faults(t *testing.T, err error) []string {
	t.Helper()
	var list *decode.Errors
	if err == nil {
		return nil
	}
	if !errors.As(err, &list) {
		t.Fatalf("error %v is %T, want *config.Errors", err, err)
	}
	var out []string
	for _, e := range list.List {
		out = append(out, strings.TrimPrefix(e.Field+": "+e.Message, ": "))
	}
	return out
}
