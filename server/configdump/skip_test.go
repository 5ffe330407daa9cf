package configdump

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"

	adminv3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"

	"github.com/statsd-admin/statsd-admin/admin/dump"
)

// written returns the dump for a query, which must be valid.
func written(t *testing.T, q dump.Query, sections ...Section) string {
	t.Helper()
	var b bytes.Buffer
	if err := Source(func(bool) []Section { return sections }).Write(&b, q); err != nil {
		t.Errorf("%+v: %v", q, err)
	}
	if err := protojson.Unmarshal(b.Bytes(), &adminv3.ConfigDump{}); err != nil {
		t.Errorf("%v in %s", err, &b)
	}
	return b.String()
}

// TestSkippedElements leaves out elements before, between and behind others, and looks for
// a list in a section that is not the first one.
func TestSkippedElements(t *testing.T) {
	all := []Section{
		Listeners([]Listener{{Name: "l1"}, {Name: "l2"}}, at()),
		Clusters("v", clusters(message("s1"), message("s2"), message("s3")), clusters(message("d1"), message("d2")), clusters()),
	}
	only := func(names ...string) func(string) (bool, error) {
		return func(name string) (bool, error) { return slices.Contains(names, name), nil }
	}
	names := []string{"l1", "l2", "s1", "s2", "s3", "d1", "d2"}
	for _, tt := range []struct {
		q    dump.Query
		want string
	}{
		{dump.Query{}, "l1 l2 s1 s2 s3 d1 d2"},
		{dump.Query{Match: only("l2", "s2", "d2")}, "l2 s2 d2"},
		{dump.Query{Match: only("s1", "s3")}, "s1 s3"},
		{dump.Query{Resource: "static_clusters", Match: only("s2")}, "s2"},
		{dump.Query{Resource: "dynamic_listeners"}, ""},
		{dump.Query{Resource: "static_listeners", Match: only("l2")}, "l2"},
		{dump.Query{Resource: "dynamic_active_clusters", Match: only("d2")}, "d2"},
		{dump.Query{Resource: "static_clusters", Mask: "cluster.name", Match: only("s2", "s3")}, "s2 s3"},
	} {
		text := written(t, tt.q, all...)
		var got []string
		for _, name := range names {
			if strings.Contains(text, "\""+name+"\"") {
				got = append(got, name)
			}
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%+v: %q, want %q in %s", tt.q, got, tt.want, text)
		}
	}
}
