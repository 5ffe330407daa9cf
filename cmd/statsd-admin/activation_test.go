package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/bootstrap"
	"github.com/statsd-admin/statsd-admin/internal/descriptors"
	"github.com/statsd-admin/statsd-admin/server"
	"github.com/statsd-admin/statsd-admin/statsd"
)

// opened are sockets that a service manager keeps open.
type opened struct {
	t     *testing.T
	names []string
	files []*os.File
}

func (o *opened) add(name string, s any, err error) {
	o.t.Helper()
	if err != nil {
		o.t.Fatal(err)
	}
	if u, ok := s.(*net.UnixListener); ok {
		u.SetUnlinkOnClose(false)
	}
	f, err := s.(interface{ File() (*os.File, error) }).File()
	if err != nil {
		o.t.Fatal(err)
	}
	if err := s.(io.Closer).Close(); err != nil { // f is a duplicate
		o.t.Fatal(err)
	}
	o.t.Cleanup(func() { _ = f.Close() })
	o.names, o.files = append(o.names, name), append(o.files, f)
}

// start starts the program with the sockets, as a service manager does.
func (o *opened) start(bin, config string) (cmd *exec.Cmd, log *strings.Builder) {
	o.t.Helper()
	log = new(strings.Builder)
	// The shell knows the process id that the program is going to have.
	cmd = exec.Command("sh", "-c", `LISTEN_PID=$$ exec "$0" "$@"`, bin, "--disable-hot-restart", "--config-yaml", config)
	cmd.Env = append(os.Environ(), fmt.Sprint("LISTEN_FDS=", len(o.files)), "LISTEN_FDNAMES="+strings.Join(o.names, ":"))
	cmd.ExtraFiles, cmd.Stderr = o.files, log
	if err := cmd.Start(); err != nil {
		o.t.Fatal(err)
	}
	o.t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd, log
}

// TestSocketActivation starts a real process with sockets that are open
// already, twice: what arrives while none runs waits for the next one.
func TestSocketActivation(t *testing.T) {
	bin, dir := programFor(t), t.TempDir()
	o := &opened{t: t}
	admin, err := net.Listen("tcp", "127.0.0.1:0")
	o.add("admin", admin, err)
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	o.add("packets", udp, err)
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	o.add("", tcp, err) // found by its address
	gram, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(dir, "g"), Net: "unixgram"})
	o.add("statsd-admin.socket", gram, err) // likewise
	lines, err := net.Listen("unix", filepath.Join(dir, "l"))
	o.add("lines", lines, err)
	config := fmt.Sprintf(`{admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}, stats_flush_on_admin: true, statsd: {listeners: [`+
		`{name: packets, address: "udp://:8125"}, {address: "tcp://%s"}, {address: "unixgram://%[2]s/g"}, {name: lines, address: "unixlines:///somewhere/else"}]}}`,
		tcp.Addr(), dir)
	url := "http://" + admin.Addr().String()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 30 * time.Second}
	get := func(path string) string {
		resp, err := client.Get(url + path)
		if err != nil {
			return ""
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		return string(b)
	}
	send := func() {
		for _, to := range []struct{ network, address string }{
			{"udp", udp.LocalAddr().String()}, {"tcp", tcp.Addr().String()}, {"unixgram", filepath.Join(dir, "g")}, {"unix", filepath.Join(dir, "l")},
		} {
			c, err := net.Dial(to.network, to.address)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(c, "from."+to.network+":1|c\n"); err != nil {
				t.Fatal(err)
			}
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 2 {
		send() // nobody is there yet
		cmd, log := o.start(bin, config)
		want := "from.tcp: 2\nfrom.udp: 2\nfrom.unix: 2\nfrom.unixgram: 2\n"
		sent, got := false, ""
		for end := time.Now().Add(30 * time.Second); got != want; time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) {
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
				t.Fatalf("got %q, want %q; the process says\n%s", got, want, log)
			}
			if got = get("/stats?filter=^from"); strings.Contains(got, "1") && !sent {
				send()
				sent = true
			}
		}
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Fatalf("%v\n%s", err, log)
		}
		for _, name := range []string{"g", "l"} {
			if _, err := os.Lstat(filepath.Join(dir, name)); err != nil {
				t.Errorf("the path of a socket that is not the program's is gone: %v", err)
			}
		}
	}
}

func TestSocketActivationRefusals(t *testing.T) {
	bin := programFor(t)
	const config = `{admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}, statsd: {listeners: [{name: in, address: "udp://127.0.0.1:0"}]}}`
	for _, tt := range []struct {
		name, network, want string
	}{
		{"in", "tcp", `error: no listener uses the socket "in" (tcp 127.0.0.1:`},
		{"other", "udp", `error: no listener uses the socket "other" (udp 127.0.0.1:`},
		{"admin", "udp", `error: no listener uses the socket "admin" (udp `},
	} {
		t.Run(tt.name+"-"+tt.network, func(t *testing.T) {
			o := &opened{t: t}
			if tt.network == "tcp" {
				l, err := net.Listen("tcp", "127.0.0.1:0")
				o.add(tt.name, l, err)
			} else {
				c, err := net.ListenPacket("udp", "127.0.0.1:0")
				o.add(tt.name, c, err)
			}
			cmd, log := o.start(bin, config)
			if err := cmd.Wait(); err == nil || !strings.Contains(log.String(), tt.want) {
				t.Errorf("%v: %s", err, log)
			}
		})
	}
}

func TestPassedSockets(t *testing.T) {
	env := func(pid, fds, names string) func(string) string {
		return func(key string) string {
			return map[string]string{"LISTEN_PID": pid, "LISTEN_FDS": fds, "LISTEN_FDNAMES": names}[key]
		}
	}
	for _, tt := range []struct {
		name            string
		pid, fds, names string
		want            string
	}{
		{"none", "", "", "", ""},
		{"of-another-process", "8", "x", "", ""},
		{"zero", "7", "0", "", ""},
		{"no-number", "7", "x", "", `error: LISTEN_FDS is "x", not a number of sockets in [0,256]`},
		{"negative", "7", "-1", "", `error: LISTEN_FDS is "-1", not a number`},
		{"too-many", "7", "257", "", `error: LISTEN_FDS is "257", not a number`},
		{"most", "7", "256", "", "error: descriptor 3, which LISTEN_FDS announces, is not open"},
		{"names", "7", "2", "a:b:c", "error: LISTEN_FDNAMES has 3 names for 2 sockets"},
		{"closed", "7", "1", "a", "error: descriptor 3, which LISTEN_FDS announces, is not open"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := passedSockets(env(tt.pid, tt.fds, tt.names), 7, func(uintptr, string) *os.File { return nil })
			if len(got) != 0 || (err == nil) != (tt.want == "") || err != nil && !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("got %v, %v, want %q", got, err, tt.want)
			}
		})
	}
	regular := func(uintptr, string) *os.File {
		f, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	_, err := passedSockets(env("7", "1", "a"), 7, regular)
	if err == nil || !strings.Contains(err.Error(), "descriptor 3 (a), which LISTEN_FDS announces: neither a listening socket nor a datagram socket") {
		t.Errorf("a file: %v", err)
	}
}

// TestSocketsFindTheirListeners assigns sockets by name and by address.
func TestSocketsFindTheirListeners(t *testing.T) {
	dir := shortDir(t)
	path := filepath.Join(dir, "s")
	tcp := func(text string) net.Addr { return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(text)) }
	udp := func(text string) net.Addr { return net.UDPAddrFromAddrPort(netip.MustParseAddrPort(text)) }
	unix := func(network, path string) net.Addr { return &net.UnixAddr{Net: network, Name: path} }
	c, err := bootstrap.Parse("a.yaml", []byte("admin: {"+onLoopback+"}\nstatsd: {listeners: [{address: 'udp://:1'}, {address: 'tcp://127.0.0.1:2', name: t}, {address: 'unixgram://"+path+"'}, {address: 'tcp://[::]:4'}, {address: 'unixstream://"+path+"2'}]}\n"), bootstrap.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c.Admin.Address.IP = netip.MustParseAddrPort("127.0.0.1:9")
	for _, x := range []struct {
		name string
		at   []net.Addr
		want string // the listener of each socket, or the error
	}{
		{"", []net.Addr{udp("0.0.0.0:1"), udp("[::]:1")}, "0 0"}, {"", []net.Addr{udp("127.0.0.1:1")}, "no listener uses"}, {"", []net.Addr{udp("0.0.0.0:2")}, "no listener uses"}, {"", []net.Addr{tcp("0.0.0.0:1")}, "no listener uses"},
		{"", []net.Addr{tcp("127.0.0.1:2")}, "1"}, {"", []net.Addr{tcp("[::ffff:127.0.0.1]:2")}, "1"}, {"", []net.Addr{tcp("127.0.0.1:2"), tcp("127.0.0.1:2")}, "no listener uses"}, {"t", []net.Addr{tcp("127.0.0.1:7")}, "1"}, {"t", []net.Addr{udp("127.0.0.1:7")}, "no listener uses"},
		{"", []net.Addr{unix("unixgram", path)}, "2"}, {"", []net.Addr{unix("unix", path)}, "no listener uses"}, {"", []net.Addr{unix("unix", path+"2")}, "4"}, {"", []net.Addr{unix("unixgram", "")}, "no listener uses"},
		{"", []net.Addr{tcp("0.0.0.0:4")}, "3"}, {"", []net.Addr{tcp("127.0.0.1:9")}, "admin"}, {"admin", []net.Addr{tcp("127.0.0.1:8")}, "admin"}, {"admin", []net.Addr{tcp("127.0.0.1:8"), tcp("127.0.0.1:9")}, "no listener uses"},
		{"admin", []net.Addr{udp("0.0.0.0:1")}, "no listener uses"}, {"other", []net.Addr{tcp("127.0.0.1:9")}, "admin"},
	} {
		cfg := server.Config{Admin: admin.Config{Address: "127.0.0.1:9"}, StatsD: &statsd.Config{Listeners: make([]statsd.ListenerConfig, len(c.StatsD.Listeners))}}
		var got []string
		for _, addr := range x.at {
			s := passedSocket{name: x.name, file: new(os.File), addr: addr, network: addr.Network()}
			before := cfg.Admin.Socket
			if err := activate(&cfg, c, []passedSocket{s}); err != nil {
				got = []string{"no listener uses"}
				break
			}
			if cfg.Admin.Socket != before {
				got = append(got, "admin")
			}
			for i, l := range cfg.StatsD.Listeners {
				if len(l.Sockets) > 0 && l.Sockets[len(l.Sockets)-1] == s.file {
					got = append(got, fmt.Sprint(i))
				}
			}
		}
		if strings.Join(got, " ") != x.want {
			t.Errorf("%q at %v: %q, want %s", x.name, x.at, got, x.want)
		}
	}
	none := passedSocket{name: "x", addr: udp("0.0.0.0:1"), network: "udp"}
	if err := activate(new(server.Config), c, []passedSocket{none}); err == nil {
		t.Error("a server without an input and a port has a socket")
	}
}

// TestPassedSocketsAreInspected expects the kind of each passed socket, and no descriptor
// to be left open.
func TestPassedSocketsAreInspected(t *testing.T) {
	dir := shortDir(t)
	o := &opened{t: t}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	o.add("", l, err)
	u, err := net.ListenPacket("udp", "127.0.0.1:0")
	o.add("", u, err)
	x, err := net.Listen("unix", filepath.Join(dir, "x"))
	o.add("", x, err)
	g, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(dir, "g"), Net: "unixgram"})
	o.add("", g, err)
	descriptors.Check(t, "looking at sockets", func() {
		for i, want := range []string{"tcp", "udp", "unix", "unixgram"} {
			s := passedSocket{file: o.files[i]}
			if err := s.inspect(); err != nil || s.network != want || s.addr.Network() != want {
				t.Errorf("%+v, %v, want %s", s, err, want)
			}
		}
	})
	plain, err := os.Create(filepath.Join(dir, "plain"))
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	s := passedSocket{file: plain}
	if err := s.inspect(); err == nil {
		t.Error("a file is a socket")
	}
}
