package admin

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/waittest"
	"github.com/statsd-admin/statsd-admin/match"
	"github.com/statsd-admin/statsd-admin/server/profiler"
	"github.com/statsd-admin/statsd-admin/store"
)

func TestInvertedFilter(t *testing.T) {
	s := newServer(t, Config{Store: fixture()})
	lines := func(query string) []string {
		r := s.Request("GET", "/stats?"+query, nil)
		if r.Status != 200 {
			t.Fatalf("%s: %d %s", query, r.Status, r.Body)
		}
		return strings.Split(strings.TrimSuffix(string(r.Body), "\n"), "\n")
	}
	all, some, others := lines(""), lines("filter=^cluster"), lines("filter=^cluster&invert_filter")
	if len(some) == 0 || len(others) == 0 || len(some)+len(others) != len(all) {
		t.Errorf("%d lines match, %d do not, %d in all", len(some), len(others), len(all))
	}
	for _, line := range others {
		if strings.HasPrefix(line, "cluster") {
			t.Errorf("the filter matches %s", line)
		}
	}
	if again := lines("filter=^cluster"); len(again) != len(some) {
		t.Errorf("the plain filter has %d lines, then %d", len(some), len(again))
	}
	if r := s.Request("GET", "/stats?invert_filter", nil); r.Status != 400 {
		t.Errorf("without a filter: %d", r.Status)
	}
}

func TestClustersFilter(t *testing.T) {
	s := newServer(t, Config{Sources: newWorld().sources()})
	for _, format := range []string{"", "&format=json"} {
		all := string(s.Request("GET", "/clusters?filter="+format, nil).Body)
		name := usualClusters()[0].Name
		some := string(s.Request("GET", "/clusters?filter=^"+name+"$"+format, nil).Body)
		none := string(s.Request("GET", "/clusters?filter=nothing"+format, nil).Body)
		if len(some) >= len(all) || len(none) >= len(some) || !strings.Contains(some, name) || strings.Contains(none, name) {
			t.Errorf("%q: %d bytes in all, %d of one cluster, %d of none", format, len(all), len(some), len(none))
		}
	}
	if r := s.Request("GET", "/clusters?filter=(", nil); r.Status != 400 {
		t.Errorf("bad expression: %d", r.Status)
	}
}

func TestScopedReset(t *testing.T) {
	st := store.New(store.Options{})
	s := newServer(t, Config{Store: st})
	a, b := st.Scope("a").Counter("n"), st.Scope("b").Counter("n")
	a.Add(5)
	b.Add(7)
	values := func() string { return fmt.Sprint(a.Value(), b.Value()) }
	for _, step := range []struct{ query, want string }{{"?filter=nothing", "5 7"}, {"?filter=^a", "0 7"}, {"", "0 0"}} {
		post(t, s, "/reset_counters"+step.query)
		if got := values(); got != step.want {
			t.Errorf("after %q: %s, want %s", step.query, got, step.want)
		}
	}
	a.Add(2)
	if got := values(); got != "2 0" {
		t.Errorf("after the resets: %s", got)
	}
}

func TestUnknownParameters(t *testing.T) {
	s := newServer(t, Config{Sources: newWorld().sources()})
	for target, want := range map[string]string{
		"/reset_counters?filtr=x":       "unknown parameter filtr, did you mean filter?\n",
		"/drain_listeners?inboundOnly":  "unknown parameter inboundOnly, did you mean inboundonly?\n",
		"/quitquitquit?x=1":             "unknown parameter x: this path has no parameters\n",
		"/healthcheck/fail?x=1":         "unknown parameter x: this path has ttl, dry_run\n",
		"/reopen_logs?a%0Ab=1":          "unknown parameter \"a\\nb\": this path has no parameters\n",
		"/ingest/forget?nam=a&prefix=b": "unknown parameter nam, did you mean name?\n",
	} {
		before := s.metrics.unknown.Value()
		if r := s.Request("POST", target, nil); r.Status != 400 || string(r.Body) != want || s.metrics.unknown.Value() != before+1 {
			t.Errorf("POST %s: %d %q", target, r.Status, r.Body)
		}
		if e := s.Audit(1)[0]; e.Status != 400 {
			t.Errorf("POST %s: audit %+v", target, e)
		}
	}
	plain := s.Request("GET", "/stats?usedonly", nil)
	r := s.Request("GET", "/stats?usedonly&filte=x&a%0d%0ab", nil)
	if r.Status != 200 || r.Get("x-unknown-parameters") != "filte, a%0D%0Ab" || string(plain.Body) == "" || plain.Get("x-unknown-parameters") != "" {
		t.Errorf("%d %v", r.Status, r.Header)
	}
	for _, target := range []string{"/runtime?format=json", "/stats/prometheus?format=prometheus&type=All", "/stats?prom_protobuf&format=metrics", "/stats?"} {
		if r := s.Request("GET", target, nil); r.Status != 200 || r.Get("x-unknown-parameters") != "" {
			t.Errorf("%s: %d %v", target, r.Status, r.Header)
		}
	}
}

// countingFlusher counts flushes.
type countingFlusher struct{ n int }

func (f *countingFlusher) FlushForAdmin() { f.n++ }

func TestHeadDoesNotFlush(t *testing.T) {
	f := new(countingFlusher)
	s := newServer(t, Config{Flusher: f})
	for method, want := range map[string]int{"HEAD": 0, "GET": 1} {
		for _, path := range []string{"/stats", "/stats/histogram?filter=a"} {
			f.n = 0
			if s.Request(method, path, nil); f.n != want {
				t.Errorf("%s %s flushes %d times, want %d", method, path, f.n, want)
			}
		}
	}
}

func TestHTTP10WithoutHost(t *testing.T) {
	s := start(t, Config{})
	for raw, want := range map[string]int{
		"GET /ready HTTP/1.0\r\n\r\n":                                    200,
		"GET /ready HTTP/1.0\r\nHost: evil.test\r\n\r\n":                 403,
		"GET /ready HTTP/1.0\r\nHost:\r\n\r\n":                           403,
		"GET http://evil.test/ready HTTP/1.0\r\n\r\n":                    403,
		"POST /reset_counters HTTP/1.0\r\nOrigin: http://x.test\r\n\r\n": 403,
	} {
		if a := parseAnswers(t, talk(t, s, raw)); len(a) != 1 || a[0].status != want {
			t.Errorf("%q: %+v, want %d", raw, a, want)
		}
	}
}

func TestSecretRuntimeValuesAreMasked(t *testing.T) {
	log, world := new(logBuffer), newWorld()
	s := newServer(t, Config{Sources: world.sources(), Logger: log.logger()})
	post(t, s, "/runtime_modify?upstream.api_key=hush&plain=shown")
	shown := string(s.Request("GET", "/runtime", nil).Body) + log.String() + fmt.Sprint(s.Audit(1))
	if strings.Contains(shown, "hush") || !strings.Contains(shown, "shown") || !strings.Contains(shown, "[redacted]") {
		t.Errorf("%s", shown)
	}
	if got := world.overrides()["upstream.api_key"]; got != "hush" {
		t.Errorf("the value is %q", got)
	}
}

// TestMetadataIsShown checks that metadata is shown even if it is empty, and that what
// only looks secret in it is hidden unless the settings show it.
func TestMetadataIsShown(t *testing.T) {
	for _, tt := range []struct {
		metadata map[string]any
		untyped  bool
		want     string
	}{
		{nil, false, `"metadata": {}`},
		{nil, true, `"metadata": {}`},
		{map[string]any{"password": "hush"}, false, `"password": "[redacted]"`},
		{map[string]any{"password": "hush"}, true, `"password": "hush"`},
	} {
		s := newServer(t, Config{ShowUntyped: tt.untyped, Sources: Sources{Info: func() ServerInfo { return ServerInfo{Node: &Node{Metadata: tt.metadata}} }}})
		if body := string(s.Request("GET", "/server_info", nil).Body); !strings.Contains(body, tt.want) {
			t.Errorf("untyped %t: %s, want %s", tt.untyped, body, tt.want)
		}
	}
}

func TestPortableCountersAreShown(t *testing.T) {
	for portable, want := range map[bool]int{true: 1, false: 0} {
		s := newServer(t, Config{Sources: Sources{Info: func() ServerInfo { return ServerInfo{PortableCounters: portable} }}})
		if body := string(s.Request("GET", "/server_info", nil).Body); strings.Count(body, `"portable_counters": true`) != want {
			t.Errorf("%t: %s", portable, body)
		}
	}
}

func TestRefusalNamesTheQuery(t *testing.T) {
	s := newServer(t, Config{AllowPaths: match.List{match.Exact("/stats?usedonly")}})
	if r := s.Request("GET", "/stats?filter=x", nil); r.Status != 403 || string(r.Body) != "request to path /stats?filter=x not allowed\n" {
		t.Errorf("%d %q", r.Status, r.Body)
	}
}

func TestProfilersDoNotOverlap(t *testing.T) {
	cpu, heap := profiler.New(t.TempDir() + "/p")
	s := newServer(t, Config{Sources: Sources{CPUProfiler: cpu, HeapProfiler: heap}})
	post(t, s, "/heapprofiler?enable=y")
	if r := s.Request("POST", "/cpuprofiler?enable=y", nil); r.Status != 400 || !strings.Contains(string(r.Body), "heap profiler is running") {
		t.Errorf("%d %q", r.Status, r.Body)
	}
	post(t, s, "/heapprofiler?enable=n")
}

func TestProfileParameters(t *testing.T) {
	s := newServer(t, Config{DebugEndpoints: true})
	if r := s.Request("GET", "/debug/pprof/goroutine?debug=1", nil); r.Status != 200 || r.Get("content-type") != typeText || !strings.HasPrefix(string(r.Body), "goroutine profile: total ") {
		t.Errorf("%d %v %.40s", r.Status, r.Header, r.Body)
	}
	for _, query := range []string{"?seconds=0", "?seconds=601", "?seconds=x", "?seconds=1&debug=1", "?debug=x", "?debug=-1"} {
		if r := s.Request("GET", "/debug/pprof/heap"+query, nil); r.Status != 400 {
			t.Errorf("%s: %d", query, r.Status)
		}
	}
}

// fullListener has one descriptor, for the spare or a connection.
type fullListener struct {
	net.Listener
	s       *spare
	pending net.Conn
	taken   atomic.Bool // a connection has the descriptor
}

// newFullListener returns a listener that shares its descriptor with s.
func newFullListener(s *spare) *fullListener {
	l := &fullListener{Listener: must(net.Listen("tcp", "127.0.0.1:0")), s: s}
	s.open = func() (*os.File, error) {
		if l.taken.Load() {
			return nil, &os.PathError{Err: syscall.EMFILE}
		}
		return openNull()
	}
	return l
}

func (l *fullListener) Accept() (nc net.Conn, err error) {
	if l.pending == nil {
		if l.pending, err = l.Listener.Accept(); err != nil {
			return nil, err
		}
	}
	if l.s.held() || l.taken.Load() {
		return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	}
	l.taken.Store(true)
	nc, l.pending = &onlyConn{l.pending.(*net.TCPConn), l}, nil
	return nc, nil
}

// onlyConn is a connection that has the descriptor of its listener.
type onlyConn struct {
	*net.TCPConn
	l *fullListener
}

func (c *onlyConn) Close() error {
	err := c.TCPConn.Close()
	c.l.taken.Store(false)
	return err
}

func (s *spare) held() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.file != nil
}

// TestIdleConnectionsGiveBackTheSpareDescriptor: clients that connected before a probe and
// say nothing do not keep it waiting for the time that a request may take.
func TestIdleConnectionsGiveBackTheSpareDescriptor(t *testing.T) {
	s := newServer(t, Config{Limits: Limits{ReadTimeout: time.Hour, IdleTimeout: time.Hour}})
	ln := newFullListener(&s.spare)
	const idle = 3
	var ends []net.Conn
	for range idle {
		ends = append(ends, must(net.Dial("tcp", ln.Addr().String())))
	}
	probe := must(net.Dial("tcp", ln.Addr().String()))
	defer probe.Close()
	fmt.Fprint(probe, "GET /ready HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ln) }()
	if a := parseAnswers(t, string(must(io.ReadAll(probe))))[0]; a.status != 200 {
		t.Errorf("%+v", a)
	}
	for _, c := range ends {
		if n, err := c.Read(make([]byte, 1)); n != 0 || err == nil {
			t.Errorf("an idle connection reads %d bytes, %v", n, err)
		}
		_ = c.Close()
	}
	_ = s.Close()
	<-ended
	if n := s.metrics.rejected.Value(); n != idle {
		t.Errorf("%d are counted as rejected, want %d", n, idle)
	}
}

// connected returns the two ends of a connection.
func connected(t *testing.T, network, address string) (near, far net.Conn) {
	ln := must(net.Listen(network, address))
	defer ln.Close()
	near = must(net.Dial(network, ln.Addr().String()))
	far = must(ln.Accept())
	t.Cleanup(func() { near.Close(); far.Close() })
	return near, far
}

// TestAcceptKeepsASpare: each connection that is accepted while the spare descriptor is
// missing restores it, and is an ordinary one then.
func TestAcceptKeepsASpare(t *testing.T) {
	ln := must(net.Listen("tcp", "127.0.0.1:0"))
	defer ln.Close()
	s := spare{open: openNull}
	for range 2 {
		defer must(net.Dial("tcp", ln.Addr().String())).Close()
		nc, last, err := s.accept(ln)
		if err != nil || last || !s.held() {
			t.Fatalf("last %t, held %t, %v", last, s.held(), err)
		}
		_ = nc.Close()
		if !s.release() || s.release() {
			t.Error("there is not one descriptor to release")
		}
	}
	for err, want := range map[error]bool{nil: false, syscall.EMFILE: true, &os.PathError{Err: syscall.ENFILE}: true, os.ErrNotExist: false} {
		if usedUp(err) != want {
			t.Errorf("%v: %t", err, !want)
		}
	}
}

// acceptFunc is the Accept of a listener.
type acceptFunc func() (net.Conn, error)

func (f acceptFunc) Accept() (net.Conn, error) { return f() }
func (acceptFunc) Close() error                { return nil }
func (acceptFunc) Addr() net.Addr              { return nil }

// TestShortageIsOver: a connection that comes when there are descriptors again is an
// ordinary one, even if the accept before it failed for want of one.
func TestShortageIsOver(t *testing.T) {
	full := true
	s := spare{open: openNull}
	s.fill()
	nc, last, err := s.accept(acceptFunc(func() (net.Conn, error) {
		if full {
			full = false
			return nil, syscall.EMFILE
		}
		return new(net.TCPConn), nil
	}))
	if nc == nil || last || err != nil || !s.held() {
		t.Errorf("%v, last %t, %v, held %t", nc, last, err, s.held())
	}
	s.close()
}

// TestPatience halves with each silent client, down to its least, until one speaks.
func TestPatience(t *testing.T) {
	near, far := connected(t, "tcp", "127.0.0.1:0")
	s := spare{patience: 4 * leastPatience, most: mostPatience}
	for _, want := range []time.Duration{2 * leastPatience, leastPatience, leastPatience} {
		if s.awaits(near) || s.patience != want {
			t.Errorf("after a silent client %v, want %v", s.patience, want)
		}
	}
	_ = far.Close()
	s.patience = time.Hour
	if !s.awaits(near) || s.patience != mostPatience {
		t.Errorf("after one that spoke %v", s.patience)
	}
}

// TestSpeaks: data that is there or comes, and the end, are noticed and not read; the
// deadline is gone afterwards.
func TestSpeaks(t *testing.T) {
	for network, address := range map[string]string{"tcp": "127.0.0.1:0", "unix": t.TempDir() + "/s"} {
		near, far := connected(t, network, address)
		if speaks(near, time.Millisecond) {
			t.Errorf("%s: a silent client speaks", network)
		}
		heard := make(chan bool)
		go func() { heard <- speaks(near, time.Hour) }()
		_, _ = far.Write([]byte("ab"))
		if !<-heard || !speaks(near, -time.Hour) { // however late
			t.Errorf("%s: data is not noticed", network)
		}
		var b [3]byte
		if n, err := near.Read(b[:]); string(b[:n]) != "ab" || err != nil {
			t.Errorf("%s: afterwards %q, %v", network, b[:n], err)
		}
		_ = far.Close()
		if !speaks(near, time.Hour) {
			t.Errorf("%s: the end is not noticed", network)
		}
		_ = near.Close()
		if !speaks(near, time.Hour) {
			t.Errorf("%s: a closed connection is silent", network)
		}
	}
	if a, _ := net.Pipe(); !speaks(a, 0) {
		t.Error("a connection without a descriptor is silent")
	}
}

// TestReadyWithoutDescriptors checks that a process without free descriptors still
// answers probes on new connections, one after the other, and nothing else.
func TestReadyWithoutDescriptors(t *testing.T) {
	s := newServer(t, Config{})
	ln := newFullListener(&s.spare)
	s.spare.patience, s.spare.most = time.Hour, time.Hour
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ln) }()
	waittest.Until(t, "the address", func() bool { return s.Addr() != nil })
	for range 3 {
		for path, want := range map[string]int{"/ready": 200, "/help": 503} {
			waittest.Until(t, "the descriptor in reserve", s.spare.held)
			if a := get(t, s, path); a.status != want {
				t.Errorf("%s: %+v", path, a)
			}
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	if s.spare.fill(); s.spare.held() { // as the end of a connection does that outlasts Close
		t.Error("the descriptor in reserve is still open")
	}
}
