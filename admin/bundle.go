package admin

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net"
	"runtime/debug"
	"runtime/pprof"
	"strconv"
	"strings"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/jsontext"
	"github.com/statsd-admin/statsd-admin/internal/redact"
)

// The bounds of a bundle.
const (
	bundleMember   = 256 << 20 // bytes of a file before compression; the rest is cut
	bundleMaxCPU   = 30 * time.Second
	bundleTime     = 10 * time.Minute // to send all but the profile
	bundleManifest = "manifest.json"
	bundleSums     = "SHA256SUMS"
)

// bundlePart is a file of a bundle: the answer to a request, or what write writes.
type bundlePart struct {
	name, target string
	write        func(io.Writer) error
}

// bundleParts returns the files of a bundle. Each is left out if its endpoint does not
// exist.
func (s *Server) bundleParts(ctx context.Context, cpu time.Duration) []bundlePart {
	parts := []bundlePart{
		{name: "server_info.json", target: "/server_info"},
		{name: "build.txt", write: buildInfo},
		{name: "memory.json", target: "/memory"},
		{name: "contention.txt", target: "/contention"},
		{name: "init_dump.json", target: "/init_dump"},
		{name: "listeners.json", target: "/listeners?format=json"},
		{name: "certs.json", target: "/certs"},
		{name: "runtime.json", target: "/runtime"},
		{name: "loggers.txt", write: s.writeLoggers},
		{name: "audit.json", target: "/audit?format=json&limit=1000000"},
		{name: "clusters.json", target: "/clusters?format=json"},
		{name: "config_dump.json", target: "/config_dump?include_eds"},
		{name: "sinks.json", target: "/sinks?format=json"},
		{name: "ingest.json", target: "/ingest?format=json&limit=100"},
		{name: "mapping.json", target: "/ingest/mapping?format=json"},
		{name: "stats.txt", target: "/stats?hidden=include"},
		{name: "histograms.txt", target: "/stats?type=Histograms&histogram_buckets=detailed"},
		{name: "goroutines.txt", write: func(w io.Writer) error { return pprof.Lookup("goroutine").WriteTo(w, 1) }},
		{name: "heap.pprof", write: func(w io.Writer) error { return pprof.Lookup("heap").WriteTo(w, 0) }},
	}
	if cpu > 0 {
		parts = append(parts, bundlePart{name: "cpu.pprof", write: func(w io.Writer) error { return recordCPU(ctx, w, cpu) }})
	}
	return parts
}

// recordCPU writes a CPU profile of length d.
func recordCPU(ctx context.Context, w io.Writer, d time.Duration) error {
	if err := pprof.StartCPUProfile(w); err != nil {
		return err
	}
	defer pprof.StopCPUProfile()
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func buildInfo(w io.Writer) error {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return errors.New("the program has no build information")
	}
	_, err := io.WriteString(w, info.String())
	return err
}

func (s *Server) writeLoggers(w io.Writer) error {
	if s.src.Loggers == nil {
		return errors.New("the program has set no loggers")
	}
	var out strings.Builder
	for _, l := range s.src.Loggers.List() {
		out.WriteString(l.Name + ": " + l.Level.String() + "\n")
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// Bundle writes a support archive in zip format: stats, histograms,
// configuration, runtime values, clusters, audit log, goroutines, heap profile,
// build and more, without secrets, whatever Config.ShowUntyped says. If cpu is
// positive, at most 30 s, it also records a CPU profile for that time.
// manifest.json lists the files with their SHA-256 sums, and SHA256SUMS has the
// sums in the form of sha256sum. A file that could not be created is listed in
// the manifest with the reason, and is not an error. Only one bundle is created
// at a time; other calls fail with [ErrBundleRunning].
func (s *Server) Bundle(ctx context.Context, w io.Writer, cpu time.Duration) error {
	if cpu < 0 || cpu > bundleMaxCPU {
		return fmt.Errorf("admin: a CPU profile of %v is not in [0, %v]", cpu, bundleMaxCPU)
	}
	if !s.bundling.CompareAndSwap(false, true) {
		return ErrBundleRunning
	}
	defer s.bundling.Store(false)
	return s.bundle(ctx, w, cpu)
}

// bundle is Bundle for a caller that holds the only place.
func (s *Server) bundle(ctx context.Context, w io.Writer, cpu time.Duration) error {
	b := bundle{ctx: ctx, zip: zip.NewWriter(w), now: s.now()}
	b.manifest.BeginObject()
	b.manifest.Key("v").Number(1)
	b.manifest.Key("product").String(s.product)
	b.manifest.Key("created").Time(b.now)
	b.manifest.Key("files").BeginList()
	for _, p := range s.bundleParts(ctx, cpu) {
		if p.write == nil {
			path, _, _ := strings.Cut(p.target, "?")
			e := s.table.Load().byPath[path]
			if e == nil || !e.in(s.cfg.Mode) || !s.allowed(p.target) {
				continue
			}
			p.write = func(w io.Writer) error { return s.member(e, p.target, w) }
		}
		if err := b.add(p); err != nil {
			return err
		}
	}
	b.manifest.EndList()
	b.manifest.EndObject()
	if err := b.file(bundleManifest, b.manifest.Bytes()); err != nil {
		return err
	}
	if err := b.file(bundleSums, b.sums); err != nil {
		return err
	}
	return b.zip.Close()
}

// ErrBundleRunning is returned by [Server.Bundle] while another call is
// running.
var ErrBundleRunning = errors.New("admin: another bundle is being made")

// bundle is an archive in the making.
type bundle struct {
	ctx      context.Context
	zip      *zip.Writer
	now      time.Time
	manifest jsontext.Writer
	sums     []byte // lines of SHA256SUMS
}

// add adds a file. It fails only if the archive cannot be written.
func (b *bundle) add(p bundlePart) error {
	out, err := b.create(p.name)
	if err != nil {
		return err
	}
	m := member{ctx: b.ctx, w: out, hash: sha256.New()}
	var failed error
	if strings.HasSuffix(p.name, ".pprof") {
		failed = p.write(&m)
	} else {
		clean := redact.NewScrubber(&m)
		failed = errors.Join(p.write(clean), clean.Close())
	}
	if m.err != nil {
		return m.err
	}
	if err := b.ctx.Err(); err != nil {
		return err
	}
	b.manifest.BeginObject()
	b.note(p.name, &m)
	if failed != nil && !m.cut {
		b.manifest.Key("error").String(redact.Text(strings.TrimSpace(strings.ToValidUTF8(failed.Error(), "\ufffd"))))
	}
	b.manifest.EndObject()
	return nil
}

// file adds a file with the given contents.
func (b *bundle) file(name string, text []byte) error {
	out, err := b.create(name)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(text)
	b.sums = append(b.sums, hex.EncodeToString(sum[:])+"  "+name+"\n"...)
	_, err = out.Write(text)
	return err
}

func (b *bundle) create(name string) (io.Writer, error) {
	return b.zip.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate, Modified: b.now})
}

// note writes what the manifest says of a complete file.
func (b *bundle) note(name string, m *member) {
	sum := hex.EncodeToString(m.hash.Sum(nil))
	b.sums = append(b.sums, sum+"  "+name+"\n"...)
	b.manifest.Key("name").String(name)
	b.manifest.Key("bytes").Number(uint64(m.n))
	b.manifest.Key("sha256").String(sum)
	if m.cut {
		b.manifest.Key("truncated").Bool(true)
	}
}

// member is a file of a bundle as a writer.
type member struct {
	ctx  context.Context
	w    io.Writer
	hash hash.Hash
	n    int
	cut  bool
	err  error // of the archive
}

// errMemberFull ends a file that is too long.
var errMemberFull = errors.New("admin: file of a bundle is too long")

// Write implements io.Writer.
func (m *member) Write(p []byte) (int, error) {
	if m.err == nil {
		m.err = m.ctx.Err()
	}
	if m.err != nil {
		return 0, m.err
	}
	if m.n+len(p) > bundleMember {
		m.cut = true
		return 0, errMemberFull
	}
	m.n += len(p)
	m.hash.Write(p)
	_, m.err = m.w.Write(p)
	return len(p), m.err
}

// member writes the answer of an endpoint to w. The client of the bundle may do
// everything, so there is nothing to check.
func (s *Server) member(e *Endpoint, target string, to io.Writer) error {
	r := &Request{method: "GET", proto: "HTTP/1.1", host: "localhost", closing: s.session(), principal: Principal{Role: RoleAdmin}, bundled: true}
	defer r.settle()
	r.setTarget(target)
	w := s.response(&memberTransport{memory{stop: s.session()}, to}, r)
	err := w.finish(s.dispatch(e, w, r))
	if err == nil && w.status >= 400 {
		err = fmt.Errorf("status %d", w.status)
	}
	return err
}

// memberTransport sends the body of a response to a writer.
type memberTransport struct {
	memory
	to io.Writer
}

func (m *memberTransport) begin(*Response, int) error { return nil }

func (m *memberTransport) body(a, b []byte) error {
	chunk := net.Buffers{a, b}
	_, err := chunk.WriteTo(m.to)
	return err
}

func (s *Server) showBundle(w *Response, r *Request) error {
	cpu := time.Duration(0)
	if text := r.query.Value("cpu"); text != "" {
		var err error
		if cpu, err = time.ParseDuration(text); err != nil || cpu < 0 || cpu > bundleMaxCPU {
			return badRequest("cpu " + quoted(text[:min(len(text), unknownBytes)]) + " is not a duration from 0s to 30s, such as 5s\n")
		}
	}
	if !s.bundling.CompareAndSwap(false, true) {
		s.metrics.busy.Inc()
		w.SetHeader("retry-after", "10")
		return w.text(503, "another bundle is being made\n")
	}
	defer s.bundling.Store(false)
	w.SetType("application/zip")
	name := s.product + "-bundle-" + s.now().UTC().Format("20060102T150405Z") + ".zip"
	w.SetHeader("content-disposition", "attachment; filename="+strconv.Quote(name))
	ended := w.Endless() // it may take longer than other answers
	ctx, cancel := context.WithTimeout(closingContext{context.Background(), ended}, cpu+bundleTime)
	defer cancel()
	if err := w.Flush(); err != nil {
		return err
	}
	err := s.bundle(ctx, w, cpu)
	if err != nil && ctx.Err() != nil {
		return ErrGone
	}
	return err
}
