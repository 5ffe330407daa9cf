//go:build unix

package xds

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/statsd-admin/statsd-admin/internal/waittest"
	"github.com/statsd-admin/statsd-admin/upstream/config"
)

// TestFilesThatAreNoneHoldNothingUp lets a server name a pipe without a writer: its
// cluster has no hosts and can be removed.
func TestFilesThatAreNoneHoldNothingUp(t *testing.T) {
	dir := t.TempDir()
	pipe, cds := filepath.Join(dir, "pipe"), filepath.Join(dir, "cds.yaml")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	put(t, cds, fmt.Sprintf(fileOfClusters, "1", "a", pipe))
	d := newOnDisk(t, config.ConfigSource{Kind: config.SourcePath, Path: cds}, nil, dir)
	defer release(t, pipe)
	waittest.Equal(t, "stats", "update_failure=1", func() string { return d.counts("cluster.a.update_failure") })
	waittest.Equal(t, "ready", "yes", d.ready)
	put(t, cds, "{version_info: '2'}")
	waittest.Equal(t, "hosts after the removal", "-", func() string { return d.hosts("a") })
	waittest.Equal(t, "version", "2", d.m.Version)
	d.mu.Lock()
	defer d.mu.Unlock()
	if !strings.Contains(d.log.String(), "not a regular file") {
		t.Errorf("log: %s", &d.log)
	}
}

// release unblocks readers of the pipe.
func release(t *testing.T, pipe string) {
	fd, err := syscall.Open(pipe, syscall.O_WRONLY|syscall.O_NONBLOCK, 0)
	if err == nil {
		err = syscall.Close(fd)
	} else if err == syscall.ENXIO { // no reader waits
		err = nil
	}
	if err != nil {
		t.Error(err)
	}
}
