package configdump

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	adminv3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/statsd-admin/statsd-admin/admin/dump"
	"github.com/statsd-admin/statsd-admin/server/listeners"
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
		Listeners([]listeners.Listener{{Name: "l1"}, {Name: "l2"}}, at()),
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
		if tt.q.Resource == "" && !strings.Contains(text, `"version_info": "v"`) {
			t.Errorf("%+v: no version in %s", tt.q, text)
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%+v: %q, want %q in %s", tt.q, got, tt.want, text)
		}
	}
}

// TestRefusedQueries expects errors before anything is written.
func TestRefusedQueries(t *testing.T) {
	boot := Section{Message: &adminv3.BootstrapConfigDump{Bootstrap: &bootstrapv3.Bootstrap{}}}
	list := Clusters("v", clusters(message("s1"), message("s2")), clusters(), clusters())
	for _, tt := range []struct {
		q    dump.Query
		want *dump.Error
	}{
		{dump.Query{Resource: "bootstrap"}, dump.NotRepeated("bootstrap")},
		{dump.Query{Resource: "none"}, dump.NotFound("none")},
		{dump.Query{Mask: "none"}, dump.Unfit("none")},
		{dump.Query{Resource: "static_clusters", Mask: "cluster.none"}, dump.UnfitPaths([]string{"cluster.none"})},
		{dump.Query{Resource: "static_clusters", Mask: "cluster.none", Match: func(name string) (bool, error) { return name == "s2", nil }}, dump.UnfitPaths([]string{"cluster.none"})},
	} {
		var b bytes.Buffer
		err := Source(func(bool) []Section { return []Section{list, boot} }).Write(&b, tt.q)
		if got, ok := errors.AsType[*dump.Error](err); !ok || *got != *tt.want || b.Len() > 0 {
			t.Errorf("%+v: %v, want %v; wrote %q", tt.q, err, tt.want, &b)
		}
	}
	none := dump.Query{Resource: "static_clusters", Mask: "cluster.none", Match: func(string) (bool, error) { return false, nil }}
	if text := written(t, none, list); text != "{}\n" {
		t.Errorf("nothing matches: %q", text)
	}
}

// TestTypeChangesDuringTheDump expects an error if a mask that fitted an element fits it
// no more.
func TestTypeChangesDuringTheDump(t *testing.T) {
	asked := 0
	changing := func(yield func(Cluster) bool) {
		c := message("c")
		if asked++; asked > 1 {
			c.Message = packed(&corev3.Node{})
		}
		yield(c)
	}
	section := Clusters("v", changing, clusters(), clusters())
	err := Source(func(bool) []Section { return []Section{section} }).Write(io.Discard, dump.Query{Resource: "static_clusters", Mask: "cluster.name"})
	if err == nil || err.Error() != "configdump: c changed its type during the dump" {
		t.Error(err)
	}
}

// TestSectionsInKeyOrder: the order in which sources return sections does not matter.
func TestSectionsInKeyOrder(t *testing.T) {
	listeners := Listeners([]listeners.Listener{{Name: "first"}}, at())
	listeners.Key = "a"
	list := Clusters("v", clusters(message("second")), clusters(), clusters())
	list.Key = "b"
	if text := written(t, dump.Query{}, list, listeners); strings.Index(text, "first") > strings.Index(text, "second") {
		t.Errorf("got %s", text)
	}
}

// TestMasksChangeNoMessage: the fields that a mask leaves out are there for the next
// answer.
func TestMasksChangeNoMessage(t *testing.T) {
	boot := Section{Message: &adminv3.BootstrapConfigDump{Bootstrap: &bootstrapv3.Bootstrap{Node: &corev3.Node{Id: "first", Cluster: "second"}}}}
	if text := written(t, dump.Query{Mask: "bootstrap.node.id"}, boot); !strings.Contains(text, "first") || strings.Contains(text, "second") {
		t.Errorf("masked: %s", text)
	}
	if text := written(t, dump.Query{}, boot); !strings.Contains(text, "second") {
		t.Errorf("afterwards: %s", text)
	}
}

// TestNamesOfPackedMessages: an element without a name has that of the message in it,
// wherever that is.
func TestNamesOfPackedMessages(t *testing.T) {
	cluster := message("c").Message
	for _, m := range []proto.Message{
		&adminv3.ClustersConfigDump_StaticCluster{Cluster: cluster},
		&adminv3.ClustersConfigDump_DynamicCluster{VersionInfo: "v", Cluster: cluster, LastUpdated: timestamppb.Now()},
		&adminv3.UpdateFailureState{FailedConfiguration: cluster, Details: "d"},
	} {
		if got := configName(m); got != "c" {
			t.Errorf("%T: name %q, want c", m, got)
		}
	}
	if got := configName(&adminv3.UpdateFailureState{}); got != "" {
		t.Errorf("without a message: %q", got)
	}
}

// TestFailedWriteEndsTheDump: a client that disconnects does not cost the rest of a
// large dump.
func TestFailedWriteEndsTheDump(t *testing.T) {
	large := strings.Repeat("x", 64<<10)
	for _, q := range []dump.Query{{}, {Resource: "static_clusters"}} {
		asked := 0
		list := func(yield func(Cluster) bool) {
			for range 100 {
				if asked++; !yield(message(large)) {
					return
				}
			}
		}
		r, w := io.Pipe()
		r.Close()
		section := Clusters("v", list, clusters(), clusters())
		if err := Source(func(bool) []Section { return []Section{section} }).Write(w, q); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("%+v: %v", q, err)
		}
		if asked > 50 {
			t.Errorf("%+v: %d clusters of %d bytes were asked for", q, asked, len(large))
		}
	}
}

// TestFailedMatchEndsTheDump: the first error of a filter ends the answer and is
// returned, whichever element it comes from, though later elements match.
func TestFailedMatchEndsTheDump(t *testing.T) {
	failure := errors.New("too slow")
	section := func() []Section {
		return []Section{
			Listeners([]listeners.Listener{{Name: "l1"}, {Name: "l2"}}, at()),
			Clusters("v", clusters(message("s1"), message("s2")), clusters(message("d1")), clusters()),
		}
	}
	names := []string{"l1", "l2", "s1", "s2", "d1"}
	for _, mask := range []string{"", "static_clusters"} {
		for i, bad := range names {
			if mask == "static_clusters" && bad[0] != 's' {
				continue
			}
			asked := 0
			q := dump.Query{Mask: mask, Match: func(name string) (bool, error) {
				asked++
				if name == bad {
					return false, failure
				}
				return true, nil
			}}
			err := Source(func(bool) []Section { return section() }).Write(io.Discard, q)
			if !errors.Is(err, failure) {
				t.Errorf("mask %q, %s: %v", mask, bad, err)
			}
			if mask == "" && asked != i+1 {
				t.Errorf("%s: %d elements were asked for, want %d", bad, asked, i+1)
			}
			for _, mask := range []string{"", "cluster.name"} {
				q.Resource, q.Mask = "static_clusters", mask
				if err := Source(func(bool) []Section { return section() }).Write(io.Discard, q); bad[0] == 's' && !errors.Is(err, failure) {
					t.Errorf("%s of a list, mask %q: %v", bad, mask, err)
				}
			}
		}
	}
}
