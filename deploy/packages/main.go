// Command packages builds everything that a release consists of: archives for
// each system, Debian and RPM packages, a container image, a bill of materials and
// checksums. The same sources give the same bytes.
package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// release is a release to build.
type release struct {
	root, out string // of the repository; where the files go
	version   string // such as v0.1.0
	revision  string
	time      time.Time // of the revision; all files have it
	targets   []target
	linked    map[target][]module // what each program is made of
	texts     []file              // what the program prints about itself, the same for all targets
}

// target is a system that the program is built for.
type target struct{ os, arch string }

func (t target) String() string { return t.os + "_" + t.arch }

// allTargets are the systems of a release.
var allTargets = []target{
	{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}, {"freebsd", "amd64"}, {"windows", "amd64"},
}

func main() {
	out := flag.String("out", "dist", "`directory` for the files")
	root := flag.String("root", ".", "`directory` of the repository")
	version := flag.String("version", "", "`version`, such as v0.1.0; default: that of git describe")
	targets := flag.String("targets", "", "comma-separated `list` of OS_ARCH; default: all")
	flag.Parse()
	if err := run(*root, *out, *version, *targets); err != nil {
		fmt.Fprintln(os.Stderr, "packages:", err)
		os.Exit(1)
	}
}

func run(root, out, version, targets string) error {
	r, err := newRelease(root, out, version, targets)
	if err != nil {
		return err
	}
	if r.texts, err = r.ownTexts(); err != nil {
		return err
	}
	for _, t := range r.targets {
		fmt.Println("build", t)
		if err := r.build(t); err != nil {
			return fmt.Errorf("%v: %w", t, err)
		}
	}
	if err := r.images(); err != nil {
		return fmt.Errorf("image: %w", err)
	}
	return r.checksums()
}

func newRelease(root, out, version, targets string) (*release, error) {
	r := &release{targets: allTargets, version: version, linked: make(map[target][]module)}
	var err error
	if r.root, err = filepath.Abs(root); err != nil {
		return nil, err
	}
	if r.out, err = filepath.Abs(out); err != nil {
		return nil, err
	}
	if r.revision, err = r.output("git", "rev-parse", "HEAD"); err != nil {
		return nil, err
	}
	seconds, err := r.output("git", "log", "-1", "--format=%ct")
	if err != nil {
		return nil, err
	}
	n, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return nil, err
	}
	r.time = time.Unix(n, 0).UTC()
	if r.version == "" {
		if r.version, err = r.output("git", "describe", "--tags", "--always", "--dirty"); err != nil {
			return nil, err
		}
	}
	if targets != "" {
		r.targets = nil
		for name := range strings.SplitSeq(targets, ",") {
			i := slices.IndexFunc(allTargets, func(t target) bool { return t.String() == name })
			if i < 0 {
				return nil, fmt.Errorf("unknown target %q: want some of %v", name, allTargets)
			}
			r.targets = append(r.targets, allTargets[i])
		}
	}
	return r, os.MkdirAll(r.out, 0o755)
}

// output runs a program in the repository and returns its output.
func (r *release) output(name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = r.root
	cmd.Stderr = os.Stderr
	b, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(b)), nil
}

// build makes all files of a target.
func (r *release) build(t target) error {
	binary := filepath.Join(r.out, "bin", t.String(), "statsd-admin")
	if t.os == "windows" {
		binary += ".exe"
	}
	cmd := exec.Command("go", "build", "-trimpath", "-tags", "grpcnotrace", "-buildvcs=auto",
		"-ldflags", fmt.Sprintf("-s -w -buildid= -X main.version=%s -X main.revision=%s", r.version, r.revision), "-o", binary, "./cmd/statsd-admin")
	cmd.Dir = r.root
	cmd.Env = append(os.Environ(), "GOOS="+t.os, "GOARCH="+t.arch, "CGO_ENABLED=0", "GOFLAGS=", "GOAMD64=v1", "GOARM64=v8.0")
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return err
	}
	modules, err := r.modules(binary)
	if err != nil {
		return err
	}
	files, err := r.files(t, binary, modules)
	if err != nil {
		return err
	}
	r.linked[t] = modules
	if err := r.archive(t, files); err != nil {
		return err
	}
	if err := r.billOfMaterials(t, modules); err != nil {
		return err
	}
	if t.os != "linux" {
		return nil
	}
	return r.packages(t, files)
}

// file is a file of an archive or a package.
type file struct {
	name string // in the archive; "" if archives leave it out
	path string // in the file system of a package; "" if packages leave it out
	kind string // of nfpm: "" or "config|noreplace"
	mode int64
	data []byte
}

func (r *release) files(t target, binary string, modules []module) ([]file, error) {
	program, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	licenses, err := licenseTexts(modules)
	if err != nil {
		return nil, err
	}
	const (
		doc   = "/usr/share/doc/statsd-admin/"
		share = "/usr/share/statsd-admin/"
		noted = "config|noreplace"
	)
	files := []file{
		{name: filepath.Base(binary), path: "/usr/bin/statsd-admin", mode: 0o755, data: program},
		{name: "THIRD_PARTY_LICENSES", path: doc + "THIRD_PARTY_LICENSES", mode: 0o644, data: licenses},
	}
	for _, f := range []struct {
		pattern, path, kind string
		linux               bool // of no use elsewhere
	}{
		{"LICENSE", "/usr/share/licenses/statsd-admin/", "license", false},
		{"README.md", doc, "", false},
		{"CHANGELOG.md", doc, "", false},
		{"docs/bootstrap.schema.json", share, "", false},
		{"deploy/grafana/*.json", share + "grafana/", "", false},
		{"deploy/kubernetes/*.yaml", share + "kubernetes/", "", false},
		{"deploy/prometheus/rules.yaml", share + "prometheus/", "", false},
		{"deploy/statsd-admin.yaml", "/etc/statsd-admin/", noted, true},
		{"deploy/systemd/statsd-admin.*", "/usr/lib/systemd/system/", "", true},
		{"deploy/systemd/sysusers.conf", "/usr/lib/sysusers.d/statsd-admin.conf", "", true},
		{"deploy/systemd/tmpfiles.conf", "/usr/lib/tmpfiles.d/statsd-admin.conf", "", true},
		{"deploy/logrotate/statsd-admin", "/etc/logrotate.d/", noted, true},
	} {
		if f.linux && t.os != "linux" {
			continue
		}
		sources, err := filepath.Glob(filepath.Join(r.root, f.pattern))
		if err != nil || len(sources) == 0 {
			return nil, fmt.Errorf("no file %s: %w", f.pattern, err)
		}
		for _, source := range sources {
			data, err := os.ReadFile(source)
			if err != nil {
				return nil, err
			}
			name, err := filepath.Rel(r.root, source)
			if err != nil {
				return nil, err
			}
			path := f.path
			if strings.HasSuffix(path, "/") {
				path += filepath.Base(source)
			}
			files = append(files, file{name, path, f.kind, 0o644, data})
		}
	}
	return append(files, r.texts...), nil
}

// ownTexts returns the manual page and the completion scripts, as the sources print them.
func (r *release) ownTexts() ([]file, error) {
	var files []file
	for _, f := range []struct{ args, name, path string }{
		{"man", "share/statsd-admin.8", "/usr/share/man/man8/statsd-admin.8.gz"},
		{"completion bash", "share/completion.bash", "/usr/share/bash-completion/completions/statsd-admin"},
		{"completion fish", "share/completion.fish", "/usr/share/fish/vendor_completions.d/statsd-admin.fish"},
		{"completion zsh", "share/_statsd-admin", "/usr/share/zsh/vendor-completions/_statsd-admin"},
	} {
		// With these settings, a build for this system compiles nothing again.
		cmd := exec.Command("go", append([]string{"run", "-trimpath", "-tags", "grpcnotrace", "./cmd/statsd-admin"}, strings.Fields(f.args)...)...)
		cmd.Dir, cmd.Env, cmd.Stderr = r.root, append(os.Environ(), "CGO_ENABLED=0"), os.Stderr
		data, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.args, err)
		}
		if strings.HasSuffix(f.path, ".gz") {
			f.name += ".gz"
			if data, err = compressed(data); err != nil {
				return nil, err
			}
		}
		files = append(files, file{f.name, f.path, "", 0o644, data})
	}
	return files, nil
}

// compressed returns data in the format of gzip, without a name and a time.
func compressed(data []byte) ([]byte, error) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := z.Write(data); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// archive writes an archive with one directory: a zip file for Windows, and a compressed
// tar file for the others.
func (r *release) archive(t target, files []file) error {
	base := fmt.Sprintf("statsd-admin_%s_%v", strings.TrimPrefix(r.version, "v"), t)
	var b bytes.Buffer
	if t.os == "windows" {
		if err := writeZip(&b, base+"/", files, r.time); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(r.out, base+".zip"), b.Bytes(), 0o644)
	}
	if err := writeTar(&b, base+"/", files, r.time); err != nil {
		return err
	}
	data, err := compressed(b.Bytes())
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, base+".tar.gz"), data, 0o644)
}

func writeZip(w io.Writer, prefix string, files []file, at time.Time) error {
	zw := zip.NewWriter(w)
	for _, f := range files {
		h := &zip.FileHeader{Name: prefix + f.name, Method: zip.Deflate, Modified: at}
		h.SetMode(os.FileMode(f.mode))
		fw, err := zw.CreateHeader(h)
		if err != nil {
			return err
		}
		if _, err := fw.Write(f.data); err != nil {
			return err
		}
	}
	return zw.Close()
}

// writeTar writes files whose owner is root.
func writeTar(w io.Writer, prefix string, files []file, at time.Time) error {
	tw := tar.NewWriter(w)
	for _, f := range files {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: prefix + f.name, Mode: f.mode, Size: int64(len(f.data)), ModTime: at, Format: tar.FormatPAX}
		if strings.HasSuffix(f.name, "/") {
			h.Typeflag = tar.TypeDir
		}
		if err := tw.WriteHeader(h); err != nil {
			return err
		}
		if _, err := tw.Write(f.data); err != nil {
			return err
		}
	}
	return tw.Close()
}

// checksums writes the SHA-256 sums of all files, in the format of sha256sum.
func (r *release) checksums() error {
	entries, err := os.ReadDir(r.out)
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, e := range entries {
		if e.IsDir() || e.Name() == "SHA256SUMS" {
			continue
		}
		data, err := os.ReadFile(filepath.Join(r.out, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%x  %s\n", sha256.Sum256(data), e.Name())
	}
	return os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), []byte(b.String()), 0o644)
}
