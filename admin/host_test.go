package admin

import (
	"net/netip"
	"strings"
	"testing"
)

// hostRows lists for each host whether it is accepted at a loopback address, at an
// open address, and at a unix socket, in the modes auto and strict.
var hostRows = []struct {
	host                                                 string
	loopAuto, openAuto, unixAuto, loopStrict, openStrict bool
}{
	{"127.0.0.1", true, true, true, true, true},
	{"127.0.0.1:9901", true, true, true, true, true},
	{"127.8.9.10:1", true, true, true, true, true},
	{"10.1.2.3:9901", true, true, true, true, true},
	{"203.0.113.7", true, true, true, true, true},
	{"0.0.0.0:80", true, true, true, true, true},
	{"[::1]", true, true, true, true, true},
	{"[::1]:9901", true, true, true, true, true},
	{"[2001:db8::1]:80", true, true, true, true, true},
	{"[::ffff:127.0.0.1]:80", true, true, true, true, true},
	{"[fe80::1%25eth0]:80", true, true, true, true, true},
	{"[fe80::1%eth0]", true, true, true, true, true},
	{"[fe80::1% 00000]:00", false, false, false, false, false},
	{"[fe80::1%eth0@x]", false, false, false, false, false},
	{"localhost", true, true, true, true, true},
	{"localhost:9901", true, true, true, true, true},
	{"LOCALHOST", true, true, true, true, true},
	{"localhost.", true, true, true, true, true},
	{"LocalHost.:80", true, true, true, true, true},
	{"app.localhost", true, true, true, true, true},
	{"a.b.localhost:1", true, true, true, true, true},
	{"A.LOCALHOST.", true, true, true, true, true},
	{"exact.example.com", true, true, true, true, true},
	{"exact.example.com:9901", true, true, true, true, true},
	{"EXACT.example.COM.", true, true, true, true, true},
	{"a.wild.example.com", true, true, true, true, true},
	{"a.b.wild.example.com:80", true, true, true, true, true},
	{"A.Wild.Example.Com.", true, true, true, true, true},
	{"single", true, true, true, true, true}, // allowed by name

	// Names that cannot be owned in the public DNS.
	{"proxy", false, true, false, false, false},
	{"proxy:9901", false, true, false, false, false},
	{"PROXY.", false, true, false, false, false},
	{"my-service", false, true, false, false, false},
	{"my_service:80", false, true, false, false, false},
	{"a1", false, true, false, false, false},
	{"printer.local", false, true, false, false, false},
	{"printer.local.:80", false, true, false, false, false},
	{"vm.internal", false, true, false, false, false},
	{"metadata.google.internal", false, true, false, false, false},
	{"router.lan", false, true, false, false, false},
	{"admin.lan:9901", false, true, false, false, false},
	{"nas.home.arpa", false, true, false, false, false},
	{"proxy.default.svc", false, true, false, false, false},
	{"proxy.default.svc:9901", false, true, false, false, false},
	{"proxy.default.svc.cluster.local", false, true, false, false, false},
	{"proxy.default.svc.cluster.local.:9901", false, true, false, false, false},
	{"PROXY.DEFAULT.SVC", false, true, false, false, false},
	{"local", false, true, false, false, false},
	{"svc", false, true, false, false, false},
	{"xn--bcher-kva", false, true, false, false, false},

	// Names that can be owned.
	{host: "evil.test"}, {host: "evil.test:9901"}, {host: "evil.example"}, {host: "evil.com"}, {host: "EVIL.COM."},
	{host: "evil.com:80"}, {host: "www.evil.co.uk"}, {host: "localhost.evil.com"}, {host: "127.0.0.1.evil.com"},
	{host: "127.0.0.1.nip.io"}, {host: "127-0-0-1.sslip.io:9901"}, {host: "localtest.me"}, {host: "lvh.me:9901"},
	{host: "evillocalhost.com"}, {host: "local.evil.com"}, {host: "svc.evil.com"}, {host: "lan.evil.com"},
	{host: "evil.locals"}, {host: "evil.xlocal.com"}, {host: "evil.arpa"}, {host: "evil.home.arpa.com"},
	{host: "home.arpa"}, {host: "evil.cluster.locall"}, {host: "xn--bcher-kva.example"},
	{host: "exact.example.com.evil.com"}, {host: "notexact.example.com"}, {host: "example.com"}, {host: "wild.example.com"},
	{host: "awild.example.com"}, {host: "a.wild.example.com.evil.com"}, {host: "xexact.example.com"},

	// Not a host.
	{host: ":80"}, {host: "localhost:"}, {host: "localhost:x"}, {host: "localhost:80:80"}, {host: "localhost:65536"},
	{host: "localhost:-1"}, {host: "localhost:+80"}, {host: "localhost:080000"}, {host: "localhost :80"}, {host: " localhost"},
	{host: "localhost "}, {host: "localhost\t"}, {host: "localhost/"}, {host: "localhost/x"}, {host: "localhost?"},
	{host: "localhost#x"}, {host: "user@localhost"}, {host: "user:pw@localhost"}, {host: "evil.com@localhost"},
	{host: "localhost@evil.com"}, {host: "localhost,evil.com"}, {host: "localhost, localhost"}, {host: "localhost;evil"},
	{host: "localhost\\evil.com"}, {host: "localhost%00.evil.com"}, {host: "localhost%2eevil.com"}, {host: "loc\u0430lhost"},
	{host: "ｌocalhost"}, {host: "localhost。"}, {host: ".localhost"}, {host: "a..localhost"}, {host: "localhost.."}, {host: "."},
	{host: ".."}, {host: "::1"}, {host: "::1:80"}, {host: "[::1"}, {host: "::1]"}, {host: "[::1]x"}, {host: "[::1]:"}, {host: "[::1]:x"},
	{host: "[]"}, {host: "[]:80"}, {host: "[127.0.0.1]"}, {host: "[localhost]"}, {host: "[[::1]]"}, {host: "[::1]@evil.com"},
	{host: "[::1].evil.com"}, {host: "127.1"}, {host: "127.0.0.1.2"}, {host: "2130706433"}, {host: "127.0.0.01"}, {host: "0x7f.0.0.1"},
	{host: "256.0.0.1"}, {host: "127.0.0"}, {host: "127.0.0.1:99999"}, {host: "*"}, {host: "*.localhost"}, {host: "http://localhost"},
	{host: "localhost\x00"}, {host: "\xff"}, {host: "a\nb"},
	{host: strings.Repeat("a", 64) + ".localhost"}, {host: strings.Repeat("a.", 130) + "localhost"},
}

func TestHosts(t *testing.T) {
	allowed := []string{"exact.example.com", "*.wild.example.com", "Single."}
	auto, strict, off := newHostCheck(HostAuto, allowed), newHostCheck(HostStrict, allowed), newHostCheck(HostOff, nil)
	loop, open, unix := listenerKind{}, listenerKind{open: true}, listenerKind{unix: true}
	if len(hostRows) < 120 {
		t.Errorf("%d rows, want 120", len(hostRows))
	}
	for _, row := range hostRows {
		for _, c := range []struct {
			what  string
			check *hostCheck
			at    listenerKind
			want  bool
		}{
			{"auto loopback", auto, loop, row.loopAuto}, {"auto open", auto, open, row.openAuto}, {"auto unix", auto, unix, row.unixAuto},
			{"strict loopback", strict, loop, row.loopStrict}, {"strict open", strict, open, row.openStrict},
			{"off", off, loop, true},
		} {
			if got := c.check.accepts(row.host, c.at); got != c.want {
				t.Errorf("%s: host %q accepted: %t, want %t", c.what, row.host, got, c.want)
			}
		}
	}
	for _, check := range []*hostCheck{auto, strict} {
		if check.accepts("", loop) || check.accepts("", open) || !check.accepts("", unix) {
			t.Error("no host is accepted on a unix socket and nowhere else")
		}
	}
}

func TestRefusalHasNoEffect(t *testing.T) {
	s := start(t, Config{})
	c := s.store.Scope("x").Counter("c")
	c.Inc()
	for _, raw := range []string{
		"GET /ready HTTP/1.1\r\nHost: evil.test\r\nConnection: close\r\n\r\n",
		"GET /ready HTTP/1.0\r\nHost:\r\n\r\n",
		"POST /reset_counters HTTP/1.1\r\nHost: evil.test\r\nConnection: close\r\n\r\n",
		"POST http://evil.test/reset_counters HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
		"POST http://localhost/reset_counters HTTP/1.1\r\nHost: evil.test\r\nConnection: close\r\n\r\n",
		"GET /nothing HTTP/1.1\r\nHost: evil.test\r\nConnection: close\r\n\r\n",
	} {
		answers := parseAnswers(t, talk(t, s, raw))
		if len(answers) != 1 || answers[0].status != 403 || !strings.Contains(answers[0].body, "allowed_hosts") {
			t.Errorf("%q: %+v", raw, answers)
		}
	}
	if c.Value() != 1 {
		t.Error("a refused request reset the counters")
	}
	if got := s.metrics.host.Value(); got != 6 {
		t.Errorf("admin.host_rejected is %d, want 6", got)
	}
}

// TestOff checks that without the host check any name is served, and that the log
// warns about that.
func TestOff(t *testing.T) {
	for mode, want := range map[HostMode]int{HostAuto: 403, HostStrict: 403, HostOff: 200} {
		log := new(logBuffer)
		s := start(t, Config{HostCheck: mode, Logger: log.logger()})
		raw := "GET /ready HTTP/1.1\r\nHost: evil.test\r\nConnection: close\r\n\r\n"
		if a := parseAnswers(t, talk(t, s, raw)); len(a) != 1 || a[0].status != want {
			t.Errorf("mode %d: %+v, want status %d", mode, a, want)
		}
		if got := strings.Contains(log.String(), "level=WARN msg=\"host check is off"); got != (mode == HostOff) {
			t.Errorf("mode %d: warned %t:\n%s", mode, got, log)
		}
	}
}

// FuzzHost checks that every host accepted in strict mode is an IP address, localhost
// or a name under it, or an allowed name, and that case, a trailing dot and a port
// make no difference.
func FuzzHost(f *testing.F) {
	for _, row := range hostRows {
		f.Add(row.host)
	}
	check := newHostCheck(HostStrict, []string{"ok.example"})
	f.Fuzz(func(t *testing.T, host string) {
		if !check.accepts(host, listenerKind{}) {
			return
		}
		name := host
		if !strings.HasSuffix(name, "]") {
			if i := strings.LastIndexByte(name, ':'); i >= 0 {
				name = name[:i]
			}
		}
		name = strings.ToLower(strings.TrimSuffix(name, "."))
		bare := strings.Replace(strings.Trim(name, "[]"), "%25", "%", 1)
		_, err := netip.ParseAddr(bare)
		if err != nil && name != "localhost" && !strings.HasSuffix(name, ".localhost") && name != "ok.example" {
			t.Errorf("host %q is accepted", host)
		}
		if !check.accepts(strings.ToUpper(host), listenerKind{}) && err != nil {
			t.Errorf("host %q is accepted, not so in upper case", host)
		}
		if strings.ContainsAny(host, " @/\\?#,\r\n\x00") {
			t.Errorf("host %q is accepted", host)
		}
	})
}
