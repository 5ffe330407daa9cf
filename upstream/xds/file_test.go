package xds

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/statsd-admin/statsd-admin/internal/waittest"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/upstream"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/config/decode"
)

// onDisk runs a client that follows clusters in a file, in real time.
type onDisk struct {
	rig
	dir string

	mu  sync.Mutex // guards log
	log strings.Builder
}

// Write takes log lines.
func (d *onDisk) Write(b []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.log.Write(b)
}

func newOnDisk(t *testing.T, src config.ConfigSource, change func(*Config), dir string) *onDisk {
	d := &onDisk{dir: dir, rig: rig{t: t, st: store.New(store.Options{})}}
	o := Config{Store: d.st, Decoder: decode.NewDecoder(decode.Options{}), CDS: &src, Logger: slog.New(slog.NewTextHandler(d, nil))}
	if change != nil {
		change(&o)
	}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	d.c = c
	d.m = upstream.New(upstream.Config{Store: d.st, Source: c.Source, Transport: d.transport()})
	c.Attach(d.m)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = c.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
		d.m.Close()
	})
	d.m.Start()
	return d
}

// put moves a file into place.
func put(t *testing.T, path, text string) {
	t.Helper()
	next := filepath.Join(filepath.Dir(path), ".next")
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, path); err != nil {
		t.Fatal(err)
	}
}

const fileOfClusters = `version_info: %q
resources:
- "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: %s
  type: EDS
  eds_cluster_config: {eds_config: {path_config_source: {path: %q}}}
`

const fileOfHosts = `{"version_info": "h", "resources": [{"@type": "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment",
 "cluster_name": "%s", "endpoints": [{"lb_endpoints": [{"endpoint": {"address": {"socket_address": {"address": "10.0.0.1", "port_value": %d}}}}]}]}]}`

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	cds, eds := filepath.Join(dir, "cds.yaml"), filepath.Join(dir, "eds.json")
	put(t, eds, fmt.Sprintf(fileOfHosts, "a", 1))
	put(t, cds, fmt.Sprintf(fileOfClusters, "1", "a", eds))
	d := newOnDisk(t, config.ConfigSource{Kind: config.SourcePath, Path: cds}, nil, dir)
	waittest.Equal(t, "hosts", ":1", func() string { return d.hosts("a") })
	waittest.Equal(t, "version", "1", d.m.Version)
	waittest.Equal(t, "stats", "update_attempt=1 update_success=1", func() string { return d.counts("cluster.a.update_attempt", "cluster.a.update_success") })

	put(t, eds, fmt.Sprintf(fileOfHosts, "a", 2))
	waittest.Equal(t, "hosts", ":2", func() string { return d.hosts("a") })
	waittest.Equal(t, "stats", "update_attempt=2 update_success=2", func() string { return d.counts("cluster.a.update_attempt", "cluster.a.update_success") })

	put(t, eds, strings.Replace(fmt.Sprintf(fileOfHosts, "a", 3), "cluster_name", "cluster_nam", 1))
	waittest.Equal(t, "stats", "update_rejected=1", func() string { return d.counts("cluster.a.update_rejected") })
	put(t, eds, fmt.Sprintf(fileOfHosts, "other", 3))
	waittest.Equal(t, "stats", "update_rejected=2", func() string { return d.counts("cluster.a.update_rejected") })
	equal(t, "hosts", d.hosts("a"), ":2")

	put(t, cds, fmt.Sprintf(fileOfClusters, "2", "a\n  conect_timeout: 1s", eds))
	waittest.Equal(t, "stats", "update_rejected=1", func() string { return d.counts("cluster_manager.cds.update_rejected") })
	put(t, cds, "version_info: 3\nresources: {}\n")
	waittest.Equal(t, "stats", "update_rejected=2", func() string { return d.counts("cluster_manager.cds.update_rejected") })
	equal(t, "hosts", d.hosts("a"), ":2")
	refused := 0
	for f := range d.c.Failures {
		refused++
		equal(t, "details", f.Details, cds+`:5:3: cluster "a": conect_timeout: unknown field of Cluster; did you mean connect_timeout?`)
	}
	if refused != 1 {
		t.Errorf("%d clusters are refused, want 1", refused)
	}
	for _, want := range []string{
		eds + `:2:2: load assignment #0: cluster_nam: unknown field`,
		cds + `:5:3: cluster "a": conect_timeout: unknown field`,
		cds + `:1:15: discovery response: version_info: 3 is not a string`,
		cds + `:2:12: discovery response: resources: a mapping is not a list`,
	} {
		waittest.Equal(t, "the log has "+want, "true", func() string {
			d.mu.Lock()
			defer d.mu.Unlock()
			return fmt.Sprint(strings.Contains(strings.NewReplacer(`\\\"`, `"`, `\"`, `"`).Replace(d.log.String()), want))
		})
	}

	put(t, cds, fmt.Sprintf(fileOfClusters, "4", "b", filepath.Join(dir, "missing.yaml")))
	waittest.Equal(t, "clusters", "- ", func() string { return d.hosts("a") + " " + d.hosts("b") })
	waittest.Equal(t, "version", "4", d.m.Version)
	waittest.Equal(t, "stats", "update_failure=1 update_attempt=1", func() string { return d.counts("cluster.b.update_failure", "cluster.b.update_attempt") })
	put(t, filepath.Join(dir, "missing.yaml"), fmt.Sprintf(fileOfHosts, "b", 7))
	waittest.Equal(t, "hosts", ":7", func() string { return d.hosts("b") })
}

func TestWatchedDirectoryAndWireFile(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, clusters ...proto.Message) {
		m := &discoveryv3.DiscoveryResponse{VersionInfo: name}
		for _, c := range clusters {
			p, err := anypb.New(c)
			if err != nil {
				t.Fatal(err)
			}
			m.Resources = append(m.Resources, p)
		}
		b, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name, "cds.pb"), b, 0o600); err != nil {
			t.Fatal(err)
		}
		// Mounted volumes replace a link to a directory.
		if err := os.Symlink(name, filepath.Join(dir, "next")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, "next"), filepath.Join(dir, "current")); err != nil {
			t.Fatal(err)
		}
	}
	fromFile := func(name string) proto.Message {
		p, err := decode.NewDecoder(decode.Options{}).ClusterText("", []byte(
			"name: "+name+"\ntype: EDS\neds_cluster_config: {eds_config: {path: /nowhere/at/all}}"), config.FormV3)
		if err != nil {
			t.Fatal(err)
		}
		return p.Message()
	}
	write("one", fromFile("a"))
	d := newOnDisk(t, config.ConfigSource{
		Kind: config.SourcePath, Path: filepath.Join(dir, "current", "cds.pb"), WatchedDirectory: dir,
	}, nil, dir)
	waittest.Equal(t, "clusters", "", func() string { return d.hosts("a") })
	write("two", fromFile("b"))
	waittest.Equal(t, "clusters", "-", func() string { return d.hosts("a") })
	waittest.Equal(t, "clusters", "", func() string { return d.hosts("b") })
	waittest.Equal(t, "version", "two", d.m.Version)
}

// TestDirectoryOfFilesIsMadeAgain removes and recreates the directory of a file, with
// the file in it from the start or moved there later.
func TestDirectoryOfFilesIsMadeAgain(t *testing.T) {
	for name, watched := range map[string]bool{"parent": false, "watched": true} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "d")
			cds := filepath.Join(dir, "cds.yaml")
			src := config.ConfigSource{Kind: config.SourcePath, Path: cds}
			if watched {
				src.WatchedDirectory = dir
			}
			again := func(version string) {
				if err := os.RemoveAll(dir); err != nil {
					t.Fatal(err)
				}
				if err := os.Mkdir(dir, 0o700); err != nil {
					t.Fatal(err)
				}
				put(t, cds, "version_info: "+version+"\n")
			}
			d := newOnDisk(t, src, nil, dir) // the directory does not exist yet
			waittest.Equal(t, "stats", "update_failure=1", func() string { return d.counts("cluster_manager.cds.update_failure") })
			for _, version := range []string{"a", "b", "c"} {
				again(version)
				waittest.Equal(t, "version", version, d.m.Version)
				put(t, cds, "version_info: "+version+"2\n")
				waittest.Equal(t, "version", version+"2", d.m.Version)
			}
		})
	}
}

func TestFileBeyondTheLimit(t *testing.T) {
	dir := t.TempDir()
	cds := filepath.Join(dir, "cds.yaml")
	put(t, cds, "version_info: \"1\"\n# "+strings.Repeat("x", 100))
	d := newOnDisk(t, config.ConfigSource{Kind: config.SourcePath, Path: cds}, func(c *Config) { c.MaxMessageBytes = 64 }, dir)
	waittest.Equal(t, "stats", "update_failure=1", func() string { return d.counts("cluster_manager.cds.update_failure") })
	put(t, cds, "version_info: \"2\"")
	waittest.Equal(t, "version", "2", func() string { return d.m.Version() })
}
