package main

import (
	"bytes"
	"encoding/pem"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// nonRoot is the user of the image.
const nonRoot = "65532:65532"

// imageConfig is the configuration in the image. Its ports can be reached from outside
// the container, so the administration port changes nothing.
const imageConfig = `admin:
  mode: read_only
  address: {socket_address: {address: 0.0.0.0, port_value: 9901}}
stats_flush_interval: 5s
statsd:
  listeners:
  - {name: packets, address: "udp://0.0.0.0:8125"}
  - {name: lines, address: "tcp://0.0.0.0:8125"}
`

// images writes one OCI archive with an image for each Linux target.
func (r *release) images() error {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	found := false
	for _, t := range r.targets {
		if t.os != "linux" {
			continue
		}
		found = true
		image, err := r.image(t)
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        image,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: t.os, Architecture: t.arch}},
		})
	}
	if !found {
		return nil
	}
	dir, err := os.MkdirTemp("", "statsd-admin-image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if _, err := layout.Write(dir, index); err != nil {
		return err
	}
	return r.tarDirectory(dir, "statsd-admin_"+strings.TrimPrefix(r.version, "v")+"_oci.tar")
}

// image returns the image of a target: the program, its configuration, its licenses, and
// the certificates of public authorities for sinks and relays that speak TLS.
func (r *release) image(t target) (v1.Image, error) {
	program, err := os.ReadFile(filepath.Join(r.out, "bin", t.String(), "statsd-admin"))
	if err != nil {
		return nil, err
	}
	licenses, err := licenseTexts(r.linked[t])
	if err != nil {
		return nil, err
	}
	own, err := os.ReadFile(filepath.Join(r.root, "LICENSE"))
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := writeTar(&b, "", []file{
		{name: "etc/", mode: 0o755},
		{name: "etc/passwd", mode: 0o644, data: []byte("nonroot:x:65532:65532::/:/sbin/nologin\n")},
		{name: "etc/ssl/", mode: 0o755},
		{name: "etc/ssl/certs/", mode: 0o755},
		{name: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, data: authorities()},
		{name: "etc/statsd-admin/", mode: 0o755},
		{name: "etc/statsd-admin/statsd-admin.yaml", mode: 0o644, data: []byte(imageConfig)},
		{name: "usr/", mode: 0o755},
		{name: "usr/bin/", mode: 0o755},
		{name: "usr/bin/statsd-admin", mode: 0o755, data: program},
		{name: "usr/share/", mode: 0o755},
		{name: "usr/share/doc/", mode: 0o755},
		{name: "usr/share/doc/statsd-admin/", mode: 0o755},
		{name: "usr/share/doc/statsd-admin/LICENSE", mode: 0o644, data: own},
		{name: "usr/share/doc/statsd-admin/THIRD_PARTY_LICENSES", mode: 0o644, data: licenses},
	}, r.time); err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil }, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	created := v1.Time{Time: r.time}
	if image, err = mutate.Append(image, mutate.Addendum{Layer: layer, History: v1.History{Created: created, CreatedBy: "statsd-admin " + r.version}}); err != nil {
		return nil, err
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Created = t.os, t.arch, created
	file.Config = v1.Config{
		User:         nonRoot,
		Entrypoint:   []string{"/usr/bin/statsd-admin"},
		Cmd:          []string{"--config-path", "/etc/statsd-admin/statsd-admin.yaml", "--disable-hot-restart"},
		ExposedPorts: map[string]struct{}{"8125/tcp": {}, "8125/udp": {}, "9901/tcp": {}},
		StopSignal:   "SIGTERM",
		Healthcheck: &v1.HealthConfig{
			Test:     []string{"CMD", "/usr/bin/statsd-admin", "healthcheck"},
			Interval: 10 * time.Second, Timeout: 3 * time.Second, StartPeriod: 5 * time.Second, Retries: 3,
		},
		Labels: map[string]string{
			"org.opencontainers.image.title":    "statsd-admin",
			"org.opencontainers.image.version":  r.version,
			"org.opencontainers.image.revision": r.revision,
			"org.opencontainers.image.licenses": "Apache-2.0",
			"org.opencontainers.image.source":   "https://github.com/statsd-admin/statsd-admin",
		},
	}
	return mutate.ConfigFile(image, file)
}

// authorities returns the certificates of the authorities that browsers trust, in PEM
// form. Authorities whose newer certificates are not trusted are left out.
func authorities() []byte {
	var b bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // a buffer takes everything
		}
	}
	return b.Bytes()
}

// tarDirectory writes the files of a directory, in the order of their names.
func (r *release) tarDirectory(dir, name string) error {
	var files []file
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		f := file{mode: 0o644}
		if f.name, err = filepath.Rel(dir, path); err != nil {
			return err
		}
		if d.IsDir() {
			f.name, f.mode = f.name+"/", 0o755
		} else if f.data, err = os.ReadFile(path); err != nil {
			return err
		}
		files = append(files, f)
		return nil
	})
	if err != nil {
		return err
	}
	out, err := os.Create(filepath.Join(r.out, name))
	if err != nil {
		return err
	}
	defer out.Close()
	if err := writeTar(out, "", files, r.time); err != nil {
		return err
	}
	return out.Close()
}
