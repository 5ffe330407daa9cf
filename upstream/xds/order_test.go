package xds

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/config/decode"
)

// TestClustersInAnyOrder: whatever comes first in a response, heartbeats, refused,
// repeated and nameless clusters keep no other one from being applied, and each fault
// is reported.
func TestClustersInAnyOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, true, nil)
		r.start()
		r.open().says()
		for shift := range 6 {
			good := fmt.Sprint("good-", shift)
			data := (&answer{kind: clusterKind, version: "1", nonce: "n", heartbeats: []string{"beat"}, resources: []proto.Message{
				edsCluster("bad", timeout(-time.Second)), edsCluster(""), edsCluster(good), edsCluster("twice"), edsCluster("twice"),
			}}).encode(t, true)
			u, err := decodeResponse(data, true)
			if err != nil || len(u.resources) != 6 {
				t.Fatalf("%d resources, %v", len(u.resources), err)
			}
			u.resources = append(slices.Clone(u.resources[shift:]), u.resources[:shift]...)
			changed, faults := r.c.clusters.apply(&u.update)
			var names []string
			for _, f := range faults {
				names = append(names, f.name)
			}
			slices.Sort(names)
			if !changed || !slices.Equal(names, []string{"", "", "bad"}) {
				t.Errorf("shifted by %d: changed %t, faults of %q", shift, changed, names)
			}
			for _, name := range []string{good, "twice"} {
				if r.m.Cluster(name) == nil {
					t.Errorf("shifted by %d: %s is missing", shift, name)
				}
			}
		}
		r.stop()
	})
}

// TestFullResponsesRemoveTheRest: a cluster that a full response lacks goes, one with a
// heartbeat stays, and none goes if the response has a nameless one.
func TestFullResponsesRemoveTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, true, nil)
		r.start()
		r.open().says()
		apply := func(full bool, heartbeats []string, list ...string) {
			t.Helper()
			a := answer{kind: clusterKind, version: "1", nonce: "n", heartbeats: heartbeats}
			for _, name := range list {
				a.resources = append(a.resources, edsCluster(name))
			}
			u, err := decodeResponse(a.encode(t, true), true)
			if err != nil {
				t.Fatal(err)
			}
			u.full = full
			r.c.clusters.apply(&u.update)
		}
		check := func(want ...string) {
			t.Helper()
			var got []string
			for _, name := range []string{"a", "b", "c", "d"} {
				if r.m.Cluster(name) != nil {
					got = append(got, name)
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("clusters %q, want %q", got, want)
			}
		}
		apply(true, nil, "a", "b", "c")
		apply(false, nil, "d")
		check("a", "b", "c", "d")
		apply(true, nil, "", "a")
		check("a", "b", "c", "d")
		apply(true, []string{"b"}, "c")
		check("b", "c")
		r.stop()
	})
}

// TestDirectoriesOfSecrets: the configured directory counts, else the directory of each
// file, once.
func TestDirectoriesOfSecrets(t *testing.T) {
	file := func(name string) config.Data { return config.Data{Kind: config.DataFile, Name: name} }
	for i, tt := range []struct {
		secret *config.Secret
		want   []string
	}{
		{&config.Secret{}, nil},
		{&config.Secret{Certificate: &config.Certificate{Chain: file("/a/c"), PrivateKey: file("/a/k")}}, []string{"/a"}},
		{&config.Secret{Certificate: &config.Certificate{Chain: file("/a/c"), PrivateKey: file("/b/k")}}, []string{"/a", "/b"}},
		{&config.Secret{Certificate: &config.Certificate{Chain: file("/a/c"), PrivateKey: file("/b/k"), WatchedDirectory: "/w/"}}, []string{"/w"}},
		{&config.Secret{Certificate: &config.Certificate{WatchedDirectory: "/w"}}, nil},
		{&config.Secret{Validation: &config.Validation{TrustedCA: file("/a/c")}}, []string{"/a"}},
		{&config.Secret{Validation: &config.Validation{TrustedCA: file("/a/c"), CRL: file("/b/c")}}, []string{"/a", "/b"}},
		{&config.Secret{Validation: &config.Validation{TrustedCA: file("/a/c"), WatchedDirectory: "/w/x/.."}}, []string{"/w"}},
	} {
		if got := directories(tt.secret); !slices.Equal(got, tt.want) {
			t.Errorf("secret %d: %q, want %q", i, got, tt.want)
		}
	}
}

// TestRunWithoutAManager: Run ends with its context, connects to nothing, and keeps no
// one waiting for layers.
func TestRunWithoutAManager(t *testing.T) {
	c, err := New(Config{Store: store.New(store.Options{}), Decoder: decode.NewDecoder(decode.Options{}),
		ADS: &config.APISource{Type: config.APIGRPC, GRPC: []config.GRPCService{{ClusterName: "control"}}}})
	if err != nil {
		t.Fatal(err)
	}
	c.open = func(context.Context, *config.APISource, bool, string) (stream, error) {
		t.Error("a stream is opened")
		return nil, context.Canceled
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Run(ctx); err != nil {
		t.Error(err)
	}
	<-c.LayersReady()
}
