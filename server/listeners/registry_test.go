package listeners

import (
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/statsd-admin/statsd-admin/internal/guard/guardtest"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/upstream/config"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture is a registry with its stats and a log of stopped listeners.
type fixture struct {
	*Registry
	added, modified, removed, stopped, created, refused *store.Counter
	active, draining, warming                           *store.Gauge

	mu    sync.Mutex
	stops []string
}

func newFixture(start func(bool, func()) bool) *fixture {
	sc := store.New(store.Options{}).Root()
	gauge := func(name string) *store.Gauge { return sc.Gauge(name) }
	f := &fixture{
		added: sc.Counter("added"), modified: sc.Counter("modified"), removed: sc.Counter("removed"),
		stopped: sc.Counter("stopped"), created: sc.Counter("created"), refused: sc.Counter("refused"),
		active: gauge("active"), draining: gauge("draining"), warming: gauge("warming"),
	}
	f.warming.Set(7) // that it is set shows
	f.Registry = New(Config{Stats: Stats{
		Added: f.added, Modified: f.modified, Removed: f.removed, Stopped: f.stopped, Active: f.active,
		Created: f.created, Refused: f.refused, Draining: f.draining, Warming: f.warming,
	}, StartDrain: start})
	return f
}

func (f *fixture) listener(name string, d Direction, addresses ...string) Listener {
	l := Listener{Name: name, Direction: d, Stop: func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.stops = append(f.stops, name)
	}}
	for _, a := range addresses {
		if strings.HasPrefix(a, "/") {
			l.Addresses = append(l.Addresses, config.Address{Pipe: a})
		} else {
			l.Addresses = append(l.Addresses, config.Address{IP: netip.MustParseAddrPort(a)})
		}
	}
	return l
}

// TestCreateAndDrainStats follows the stats of creation and of stopping.
func TestCreateAndDrainStats(t *testing.T) {
	f := newFixture(nil)
	want := func(created, refused, draining uint64) {
		t.Helper()
		if c, r, d, w := f.created.Value(), f.refused.Value(), f.draining.Value(), f.warming.Value(); c != created || r != refused || d != draining || w != 0 {
			t.Errorf("%d created, %d refused, %d draining, %d warming; want %d, %d, %d, 0", c, r, d, w, created, refused, draining)
		}
	}
	inside := make(chan struct{})
	hold := make(chan struct{})
	slow := Listener{Name: "a", Stop: func() { close(inside); <-hold }}
	f.add(t, slow)
	if err := f.Add(slow); err == nil {
		t.Error("two listeners have one name")
	}
	if err := f.Replace(Listener{Name: "b"}); err == nil {
		t.Error("a listener that is not there was replaced")
	}
	want(1, 2, 0)
	done := make(chan bool)
	go func() { done <- f.Remove("a") }()
	<-inside
	want(1, 2, 1)
	close(hold)
	<-done
	want(1, 2, 0)
	f.Drain(false)
	if err := f.Add(Listener{Name: "c"}); err == nil {
		t.Error("a listener was added after the end")
	}
	want(1, 3, 0)
}

func (f *fixture) add(t *testing.T, l Listener) {
	t.Helper()
	if err := f.Add(l); err != nil {
		t.Fatal(err)
	}
}

// line prints the stats: added, modified, removed, stopped, active.
func (f *fixture) line() string {
	return fmt.Sprint(f.added.Value(), f.modified.Value(), f.removed.Value(), f.stopped.Value(), f.active.Value())
}

func (f *fixture) check(t *testing.T, stopped, stats string) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	seen := make(map[string]int)
	for _, s := range f.stops {
		seen[s]++
	}
	want := make(map[string]int)
	for s := range strings.FieldsSeq(stopped) {
		want[s]++
	}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("stopped (-want +got)\n%s", diff)
	}
	if got := f.line(); got != stats {
		t.Errorf("stats %s, want %s", got, stats)
	}
}

func TestText(t *testing.T) {
	f := newFixture(nil)
	if got := string(f.AppendText(nil)); got != "" {
		t.Errorf("empty registry: %q", got)
	}
	f.add(t, f.listener("ingress", Inbound, "0.0.0.0:15001", "0.0.0.0:15002"))
	f.add(t, f.listener("metrics_in", Inbound, "[::1]:8125"))
	f.add(t, f.listener("a-socket", Unspecified, "/run/statsd.sock"))
	want := "ingress::0.0.0.0:15001\ningress::0.0.0.0:15002\nmetrics_in::[::1]:8125\na-socket::/run/statsd.sock\n"
	if got := string(f.AppendText(nil)); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	f.Drain(false)
	if got := string(f.AppendText(nil)); got != want {
		t.Errorf("after a drain: %q", got)
	}
}

func TestDrainsCountEachListenerOnce(t *testing.T) {
	f := newFixture(nil)
	f.add(t, f.listener("in1", Inbound))
	f.add(t, f.listener("out", Outbound))
	f.add(t, f.listener("in2", Inbound))
	f.add(t, f.listener("none", Unspecified))
	f.check(t, "", "4 0 0 0 4")
	f.Drain(true)
	f.check(t, "in1 in2", "4 0 0 2 4")
	f.Drain(true)
	f.check(t, "in1 in2", "4 0 0 2 4")
	f.Drain(false)
	f.check(t, "in1 in2 out none", "4 0 0 4 4")
	f.Drain(false)
	f.check(t, "in1 in2 out none", "4 0 0 4 4")
}

func TestInboundDrainWithoutInboundListener(t *testing.T) {
	f := newFixture(nil)
	f.add(t, f.listener("out", Outbound))
	f.Drain(true)
	f.check(t, "", "1 0 0 0 1")
}

func TestStoppedDirectionsRefuseListeners(t *testing.T) {
	f := newFixture(nil)
	f.add(t, f.listener("in", Inbound))
	f.add(t, f.listener("out", Outbound))
	f.Drain(true)
	for _, change := range []func(Listener) error{f.Add, f.Replace} {
		if err := change(f.listener("in", Inbound)); err == nil || err.Error() != `listeners: "in" not added: inbound listeners are stopped` {
			t.Errorf("err = %v", err)
		}
	}
	f.add(t, f.listener("out2", Outbound))
	if err := f.Replace(f.listener("out", Outbound)); err != nil {
		t.Error(err)
	}
	f.check(t, "in out", "3 1 0 2 3")
	f.Drain(false)
	f.Drain(true) // which opens nothing again
	for _, change := range []func(Listener) error{f.Add, f.Replace} {
		if err := change(f.listener("out", Outbound)); err == nil || err.Error() != `listeners: "out" not added: all listeners are stopped` {
			t.Errorf("err = %v", err)
		}
	}
	f.check(t, "in out out out2", "3 1 0 4 3")
}

func TestAddAndRemove(t *testing.T) {
	f := newFixture(nil)
	f.add(t, f.listener("a", Inbound, "127.0.0.1:1"))
	if err := f.Add(f.listener("a", Inbound)); err == nil || err.Error() != `listeners: second listener named "a"` {
		t.Errorf("err = %v", err)
	}
	if err := f.Add(f.listener("", Inbound)); err == nil {
		t.Error("a listener without a name was added")
	}
	if err := f.Replace(f.listener("b", Inbound)); err == nil || err.Error() != `listeners: no listener named "b"` {
		t.Errorf("err = %v", err)
	}
	if err := f.Replace(f.listener("a", Inbound, "127.0.0.1:2")); err != nil {
		t.Fatal(err)
	}
	f.check(t, "a", "1 1 0 1 1")
	if got := f.List()[0].Addresses[0].String(); got != "127.0.0.1:2" {
		t.Errorf("address %s", got)
	}
	if !f.Remove("a") || f.Remove("a") {
		t.Error("Remove reports wrongly")
	}
	f.check(t, "a a", "1 1 1 2 0")
	if New(Config{}).Add(Listener{Name: "no stats, no stop"}) != nil {
		t.Error("zero config does not work")
	}
}

func TestGracefulDrain(t *testing.T) {
	var done func()
	var calls []string
	start := func(inboundOnly bool, f func()) bool {
		calls = append(calls, fmt.Sprint(inboundOnly))
		done = f
		return true
	}
	f := newFixture(start)
	f.add(t, f.listener("in", Inbound))
	f.add(t, f.listener("out", Outbound))
	f.DrainGracefully(true, true)
	done()
	f.check(t, "", "2 0 0 0 2")
	f.add(t, f.listener("in2", Inbound)) // nothing was stopped
	f.DrainGracefully(true, false)
	f.check(t, "", "3 0 0 0 3")
	done()
	f.check(t, "in in2", "3 0 0 2 3")
	f.DrainGracefully(false, false)
	done()
	f.check(t, "in in2 out", "3 0 0 3 3")
	if diff := cmp.Diff([]string{"true", "true", "false"}, calls); diff != "" {
		t.Error(diff)
	}

	at := newFixture(nil)
	at.add(t, at.listener("in", Inbound))
	at.DrainGracefully(false, true)
	at.check(t, "", "1 0 0 0 1")
	at.DrainGracefully(false, false)
	at.check(t, "in", "1 0 0 1 1")
}

// TestListNamesTheEndOfADrain expects the end of the drain of its direction with each
// listener that is not stopped.
func TestListNamesTheEndOfADrain(t *testing.T) {
	end := time.Unix(1000, 0)
	r := New(Config{DrainEnd: func(inbound bool) time.Time {
		if inbound {
			return end
		}
		return time.Time{}
	}})
	for _, d := range []Direction{Inbound, Outbound} {
		if err := r.Add(Listener{Name: d.String(), Direction: d}); err != nil {
			t.Fatal(err)
		}
	}
	if l := r.List(); !l[0].DrainEnd.Equal(end) || !l[1].DrainEnd.IsZero() {
		t.Errorf("%+v", l)
	}
	r.Drain(true)
	if l := r.List(); !l[0].Stopped || !l[0].DrainEnd.IsZero() {
		t.Errorf("after the drain: %+v", l)
	}
}

// TestDrainsWaitForAllStops: a slow listener does not delay the others, and Drain
// returns after the last one.
func TestDrainsWaitForAllStops(t *testing.T) {
	f := newFixture(nil)
	release, quick := make(chan struct{}), make(chan struct{})
	f.add(t, Listener{Name: "slow", Stop: func() { <-release }})
	f.add(t, Listener{Name: "quick", Stop: func() { close(quick) }})
	done := make(chan struct{})
	go func() { f.Drain(false); close(done) }()
	<-quick
	if f.List(); f.stopped.Value() > 1 {
		t.Error("the slow listener counts already")
	}
	select {
	case <-done:
		t.Error("returned before the slow listener stopped")
	default:
	}
	close(release)
	<-done
	if f.stopped.Value() != 2 {
		t.Errorf("stopped %d", f.stopped.Value())
	}
}

// TestSecondDrainWaitsToo: a drain beside another one returns no earlier.
func TestSecondDrainWaitsToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(nil)
		release, returned := make(chan struct{}), 0
		f.add(t, Listener{Name: "slow", Direction: Inbound, Stop: func() { <-release }})
		ended := make(chan struct{})
		for _, inboundOnly := range []bool{false, true} {
			go func() { f.Drain(inboundOnly); ended <- struct{}{} }()
			synctest.Wait()
		}
		select {
		case <-ended:
			t.Error("one returned before the listener stopped")
			returned++
		default:
		}
		close(release)
		for range 2 - returned {
			<-ended
		}
		f.Drain(false) // afterwards it does not wait
	})
}

// TestStopPanics: a listener whose Stop panics counts as stopped, and the others
// stop.
func TestStopPanics(t *testing.T) {
	panics := guardtest.New(t)
	sc := store.New(store.Options{}).Root()
	stopped, draining := sc.Counter("stopped"), sc.Gauge("draining")
	r := New(Config{Stats: Stats{Stopped: stopped, Draining: draining}, Logger: panics.Logger()})
	var stoppedOther atomic.Bool
	for name, stop := range map[string]func(){"bad": func() { panic(guardtest.Canary) }, "good": func() { stoppedOther.Store(true) }} {
		if err := r.Add(Listener{Name: name, Stop: stop}); err != nil {
			t.Fatal(err)
		}
	}
	r.Drain(false)
	panics.Caught("end of a listener")
	if !stoppedOther.Load() || stopped.Value() != 2 || draining.Value() != 0 {
		t.Errorf("the other is stopped %t; %d are stopped, %d about to", stoppedOther.Load(), stopped.Value(), draining.Value())
	}
}

// TestNothingToStop: a listener without a Stop function counts as stopped.
func TestNothingToStop(t *testing.T) {
	panics := guardtest.New(t)
	stopped := store.New(store.Options{}).Root().Counter("stopped")
	r := New(Config{Stats: Stats{Stopped: stopped}, Logger: panics.Logger()})
	if err := r.Add(Listener{Name: "a"}); err != nil {
		t.Fatal(err)
	}
	r.Drain(false)
	if stopped.Value() != 1 {
		t.Errorf("%d are stopped", stopped.Value())
	}
}

func TestAddressesOfRealListeners(t *testing.T) {
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	path := t.TempDir() + "/s.sock"
	unix, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close()
	for _, tt := range []struct {
		addr net.Addr
		want string
	}{
		{tcp.Addr(), tcp.Addr().String()}, {udp.LocalAddr(), udp.LocalAddr().String()}, {unix.Addr(), path},
		{&net.TCPAddr{IP: net.ParseIP("::ffff:10.0.0.1"), Port: 5}, "10.0.0.1:5"}, {&net.TCPAddr{IP: net.IPv6loopback, Port: 5}, "[::1]:5"},
		{&net.IPAddr{IP: net.IPv6loopback}, "::1"},
	} {
		if got := FromNet(tt.addr).String(); got != tt.want {
			t.Errorf("%v: %s, want %s", tt.addr, got, tt.want)
		}
	}
	if strings.HasSuffix(FromNet(tcp.Addr()).String(), ":0") {
		t.Error("the port is not the real one")
	}
	if TCP.String()+UDP.String() != "TCPUDP" || Inbound.String()+Outbound.String()+Unspecified.String() != "INBOUNDOUTBOUNDUNSPECIFIED" {
		t.Error("names wrong")
	}
}

func TestDrainUnderLoad(t *testing.T) {
	f := newFixture(nil)
	var stops, added atomic.Int64
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 100 {
				if f.Add(Listener{Name: fmt.Sprint(w, "-", i), Direction: Inbound, Stop: func() { stops.Add(1) }}) == nil {
					added.Add(1)
				}
				f.AppendText(nil)
			}
		})
	}
	wg.Go(func() { f.Drain(true) })
	wg.Go(func() { f.Drain(false) })
	wg.Wait()
	f.Drain(false)
	if stops.Load() != added.Load() || int64(f.stopped.Value()) != added.Load() {
		t.Errorf("%d added, %d stopped, %d counted", added.Load(), stops.Load(), f.stopped.Value())
	}
}

// TestDrainsAreLogged logs each drain that changes something, and a drain that another
// one covers.
func TestDrainsAreLogged(t *testing.T) {
	var log strings.Builder
	starts := 0
	r := New(Config{
		Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}})),
		StartDrain: func(bool, func()) bool { starts++; return starts == 1 },
	})
	for _, l := range []Listener{{Name: "in", Direction: Inbound}, {Name: "out", Direction: Outbound}} {
		if err := r.Add(l); err != nil {
			t.Fatal(err)
		}
	}
	r.DrainGracefully(true, false)
	r.DrainGracefully(true, false)
	r.Drain(true)
	r.Drain(false)
	r.Drain(false)
	const want = `level=INFO msg="graceful drain started" inbound_only=true
level=INFO msg="graceful drain not started: a running drain covers it" inbound_only=true
level=INFO msg="listeners stopped by a drain" listeners=[in]
level=INFO msg="listeners stopped by a drain" listeners=[out]
`
	if log.String() != want {
		t.Errorf("got\n%swant\n%s", &log, want)
	}
}
