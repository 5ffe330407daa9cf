package configdump

import (
	"iter"
	"time"

	adminv3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// Cluster is an upstream cluster as configured.
type Cluster struct {
	Name    string
	Version string     // of the update that brought it; not of static clusters
	Message *anypb.Any // as received, with its own type; nil if no version was ever accepted
	Updated time.Time  // when it was accepted
	Failure *Failure   // the last update, if it was refused; nil if not
}

// Failure is a rejected update.
type Failure struct {
	Message *anypb.Any // nil if it is not known
	At      time.Time
	Details string
	Version string
}

// Clusters returns the section of the clusters: static ones, active ones and warming
// ones. Version is the version of the last update of the set.
func Clusters(version string, static, active, warming iter.Seq[Cluster]) Section {
	dynamic := func(list iter.Seq[Cluster]) iter.Seq2[string, proto.Message] {
		return elements(list, func(c *Cluster) proto.Message {
			return &adminv3.ClustersConfigDump_DynamicCluster{
				VersionInfo: c.Version, Cluster: shared(c.Message), LastUpdated: millis(c.Updated), ErrorState: c.Failure.state(),
			}
		})
	}
	return Section{
		Message: &adminv3.ClustersConfigDump{VersionInfo: version},
		Lists: map[string]iter.Seq2[string, proto.Message]{
			"static_clusters": elements(static, func(c *Cluster) proto.Message {
				return &adminv3.ClustersConfigDump_StaticCluster{Cluster: shared(c.Message), LastUpdated: millis(c.Updated)}
			}),
			"dynamic_active_clusters":  dynamic(active),
			"dynamic_warming_clusters": dynamic(warming),
		},
	}
}

func elements(list iter.Seq[Cluster], message func(*Cluster) proto.Message) iter.Seq2[string, proto.Message] {
	return func(yield func(string, proto.Message) bool) {
		for c := range list {
			if !yield(c.Name, message(&c)) {
				return
			}
		}
	}
}

// shared returns a new message that shares the bytes of a.
func shared(a *anypb.Any) *anypb.Any {
	if a == nil {
		return nil
	}
	return &anypb.Any{TypeUrl: a.GetTypeUrl(), Value: a.GetValue()}
}

func (f *Failure) state() *adminv3.UpdateFailureState {
	if f == nil {
		return nil
	}
	return &adminv3.UpdateFailureState{
		FailedConfiguration: shared(f.Message), LastUpdateAttempt: millis(f.At), Details: f.Details, VersionInfo: f.Version,
	}
}
