package statsd

import (
	"log/slog"
	"math"
	"net/netip"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/statsd/line"
	"github.com/statsd-admin/statsd-admin/store"
)

// TestDefaults is what a configuration without settings means, with more CPUs
// than readers need.
func TestDefaults(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8))
	cfg, err := Config{Store: store.New(store.Options{}), Listeners: []ListenerConfig{{Address: "udp://:0"}}}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	const none = 1<<31 - 1
	limits := Limits{
		LineBytes: 8192, LinesPerPacket: 4096, NameBytes: 1024, Segments: 32, Tags: 32, TagKeyBytes: 128, TagValueBytes: 512,
		Series: 1_000_000, FirstSegment: 200_000, SeriesPerName: 50_000, NewPerSecond: 50_000, Sets: 10_000,
		ValuesPerTagKey: none, CacheEntries: 4_000_000, OverflowedNames: 1000, MemoryBytes: cfg.Limits.MemoryBytes,
	}
	want := max(64<<20, availableMemory()/4)
	if int64(limits.MemoryBytes) != want {
		t.Errorf("memory budget %d, want %d", limits.MemoryBytes, want)
	}
	for process, want := range map[int64]int64{400 << 20: 100 << 20, 1 << 20: 64 << 20, 1 << 62: want} {
		c, err := Config{Store: cfg.Store, ProcessMemory: process}.withDefaults()
		if err != nil || int64(c.Limits.MemoryBytes) != want {
			t.Errorf("process memory %d: budget %d, want %d (%v)", process, c.Limits.MemoryBytes, want, err)
		}
	}
	if cfg.Limits != limits {
		t.Errorf("limits\n got %+v\nwant %+v", cfg.Limits, limits)
	}
	if cfg.Events != 100 || cfg.Checks != 1000 || cfg.Logger == nil || cfg.Now == nil {
		t.Errorf("%d events, %d checks, log %v, a clock %t", cfg.Events, cfg.Checks, cfg.Logger, cfg.Now != nil)
	}
	listener := ListenerConfig{
		Address: "udp://:0", Readers: 4, RcvBuf: 4 << 20, PacketBytes: 65535,
		Connections: 1024, PerAddress: 64, Mode: 0o666,
	}
	if !reflect.DeepEqual(cfg.Listeners[0], listener) {
		t.Errorf("listener\n got %+v\nwant %+v", cfg.Listeners[0], listener)
	}
	parser := line.Config{LineBytes: 8192, NameBytes: 1024, Segments: 32, Tags: 32, TagKeyBytes: 128, TagValueBytes: 512}
	if got := cfg.lineConfig(); !reflect.DeepEqual(got, parser) {
		t.Errorf("parser\n got %+v\nwant %+v", got, parser)
	}
}

func TestReadersAreNotMoreThanCPUs(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(3))
	cfg, err := Config{Store: store.New(store.Options{}), Listeners: []ListenerConfig{{Address: "udp://:0"}}}.withDefaults()
	if err != nil || cfg.Listeners[0].Readers != 3 {
		t.Errorf("%d readers, want 3: %v", cfg.Listeners[0].Readers, err)
	}
}

// TestAllowed: addresses are compared whatever form the system gives them in;
// who sends to a unix socket has none.
func TestAllowed(t *testing.T) {
	for _, tt := range []struct {
		scheme, allowed, from string
		want                  bool
	}{
		{"udp", "", "192.0.2.1", true},
		{"udp", "10.0.0.0/8", "10.1.2.3", true},
		{"udp", "10.0.0.0/8", "::ffff:10.1.2.3", true},
		{"udp", "10.0.0.0/8", "11.1.2.3", false},
		{"tcp", "fe80::/10", "fe80::1%eth0", true},
		{"tcp", "2001:db8::/32", "fe80::1%eth0", false},
		{"unixgram", "10.0.0.0/8", "", true},
	} {
		addr, err := parseAddress(tt.scheme + "://" + map[bool]string{true: "/s", false: ":0"}[tt.scheme == "unixgram"])
		if err != nil {
			t.Fatal(err)
		}
		l := &listener{addr: addr}
		if tt.allowed != "" {
			l.cfg.Allowed = []netip.Prefix{netip.MustParsePrefix("192.0.2.77/32"), netip.MustParsePrefix(tt.allowed)}
		}
		var from netip.Addr
		if tt.from != "" {
			from = netip.MustParseAddr(tt.from)
		}
		if got := l.allowed(from); got != tt.want {
			t.Errorf("%s with %q allowed: %q may send: %t, want %t", tt.scheme, tt.allowed, tt.from, got, tt.want)
		}
	}
}

// TestNegativeIsNoLimit, and what depends on other limits follows them.
func TestNegativeIsNoLimit(t *testing.T) {
	var limits Limits
	v := reflect.ValueOf(&limits).Elem()
	for i := range v.NumField() {
		v.Field(i).SetInt(-7)
	}
	var log strings.Builder
	cfg, err := Config{Store: store.New(store.Options{}), Limits: limits, Logger: slog.New(slog.NewTextHandler(&log, nil))}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		warned := strings.Contains(log.String(), " "+name+",") || strings.Contains(log.String(), " "+name+"\"")
		if warned != (name != "ValuesPerTagKey") { // without a limit by default
			t.Errorf("%s: warned %t: %s", name, warned, &log)
		}
	}
	log.Reset()
	if _, err := (Config{Store: store.New(store.Options{}), Logger: slog.New(slog.NewTextHandler(&log, nil))}).withDefaults(); err != nil || log.Len() > 0 {
		t.Errorf("with all limits: %s, %v", &log, err)
	}
	v = reflect.ValueOf(cfg.Limits)
	for i := range v.NumField() {
		want := int64(unlimited)
		if v.Type().Field(i).Name == "MemoryBytes" {
			want = math.MaxInt
		}
		if n := v.Field(i).Int(); n != want {
			t.Errorf("%s is %d, want no limit", v.Type().Field(i).Name, n)
		}
	}
	for series, want := range map[int]int{10: 40, -1: 4 << 26} {
		cfg, err := Config{Store: store.New(store.Options{}), Limits: Limits{Series: series}}.withDefaults()
		if err != nil {
			t.Fatal(err)
		}
		if got := cfg.Limits.CacheEntries; got != want {
			t.Errorf("with %d series: %d cached keys, want %d", series, got, want)
		}
	}
}

// TestSettingsAtTheirLimits checks the largest and smallest valid value of each
// setting of a listener, and the values just beyond.
func TestSettingsAtTheirLimits(t *testing.T) {
	st := store.New(store.Options{})
	for _, tt := range []struct {
		good, bad ListenerConfig
		want      string
	}{
		{ListenerConfig{Readers: 256}, ListenerConfig{Readers: 257}, "readers 257 not in [1,256]"},
		{ListenerConfig{Readers: 1}, ListenerConfig{Readers: -1}, "readers -1 not in [1,256]"},
		{ListenerConfig{RcvBuf: 1 << 30}, ListenerConfig{RcvBuf: 1<<30 + 1}, "rcvbuf 1073741825 not in [1,1073741824]"},
		{ListenerConfig{RcvBuf: 1}, ListenerConfig{RcvBuf: -1}, "rcvbuf -1 not in"},
		{ListenerConfig{PacketBytes: 64}, ListenerConfig{PacketBytes: 63}, "max_packet_bytes 63 not in [64,16777216]"},
		{ListenerConfig{PacketBytes: 16 << 20}, ListenerConfig{PacketBytes: 16<<20 + 1}, "max_packet_bytes 16777217 not in"},
		{ListenerConfig{Mode: 0o777}, ListenerConfig{Mode: 0o1777}, "mode 01777 not in [0001,0777]"},
	} {
		for l, want := range map[*ListenerConfig]string{&tt.good: "", &tt.bad: tt.want} {
			l.Address = "udp://:0"
			_, err := Config{Store: st, Listeners: []ListenerConfig{*l}}.withDefaults()
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("%+v: %v, want %q", *l, err, want)
			}
		}
	}
}
