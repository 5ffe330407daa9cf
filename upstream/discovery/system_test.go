package discovery

import (
	"bytes"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestResolverConfiguration(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"empty", "", "[127.0.0.1:53 [::1]:53] [] 1 5s 2"},
		{"all", "# x\nnameserver 10.0.0.1\nnameserver fd00::1\nsearch a.example b.example\noptions ndots:3 timeout:1 attempts:4 rotate\n", "[10.0.0.1:53 [fd00::1]:53] [a.example b.example] 3 1s 4"},
		{"scope", "nameserver fe80::1%lo\n", "[[fe80::1%lo]:53] [] 1 5s 2"},
		{"nonsense", "nameserver ns.example\nnameserver\noptions ndots:x timeout:99999999999 attempts:1000 ndots:-1 timeout attempts\nsearch\n\x00\xff", "[127.0.0.1:53 [::1]:53] [] 0 30s 5"},
		{"domain", "domain a.example\n", "[127.0.0.1:53 [::1]:53] [a.example] 1 5s 2"},
		{"at-most-three", strings.Repeat("nameserver 10.0.0.1\n", 9), "[10.0.0.1:53 10.0.0.1:53 10.0.0.1:53] [] 1 5s 2"},
		{"endless-line", strings.Repeat("x", 1<<20), "[127.0.0.1:53 [::1]:53] [] 1 5s 2"},
		{"long-lines", "nameserver 10.0.0.1\n" + fmt.Sprintf("%-65535s\n%-65536s\n%-65537s\n", "nameserver 10.0.0.2", "nameserver 10.0.0.3", "#") + "options ndots:3\nsearch a.example", "[10.0.0.1:53 10.0.0.2:53 10.0.0.3:53] [a.example] 3 5s 2"},
	} {
		s := readSettings(tt.text)
		if got := fmt.Sprint(s.servers, s.search, s.ndots, s.timeout, s.attempts); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestSearchList(t *testing.T) {
	for _, tt := range []struct {
		search   string
		ndots    int
		name     string
		noSearch bool
		want     string
	}{
		{"", 1, "a", false, "a."},
		{"x.example y.example", 1, "a", false, "a.x.example. a.y.example. a."},
		{"x.example y.example", 1, "a.b", false, "a.b. a.b.x.example. a.b.y.example."},
		{"x.example", 2, "a.b", false, "a.b.x.example. a.b."},
		{"x.example", 0, "a", false, "a. a.x.example."},
		{"x.example", 1, "a.", false, "a."},
		{"x.example", 1, "a", true, "a."},
		{". x.example.", 1, "a", false, "a.x.example. a."},
		{"x.example", 1, "", false, ""},
		{"x.example", 1, ".", false, ""},
		{"x.example", 1, "a..b", false, ""},
		{strings.Repeat("long.", 60) + "example", 1, "a", false, "a."},
		{"x", 1, strings.Repeat("a", 64), false, ""},
		{"", 1, strings.Repeat("a.", 127) + "a", false, ""},
	} {
		s := settings{search: strings.Fields(tt.search), ndots: tt.ndots}
		if got := strings.Join(s.names(tt.name, tt.noSearch), " "); got != tt.want {
			t.Errorf("%q with %q, ndots %d: %s, want %s", tt.name, tt.search, tt.ndots, got, tt.want)
		}
	}
}

var hostsSeeds = []string{
	"127.0.0.1 localhost\n::1\tlocalhost ip6-localhost # both\n",
	"10.0.0.1 a.Example. A.example b#c\r\n# 10.0.0.2 a.example\n\n10.0.0.3\nx a\n",
	"fe80::1%eth0 link\n",
}

func TestHostsFile(t *testing.T) {
	got := readHosts(strings.Join(hostsSeeds, ""))
	want := map[string]string{
		"localhost": "[127.0.0.1 ::1]", "ip6-localhost": "[::1]", "a.example": "[10.0.0.1 10.0.0.1]", "b": "[10.0.0.1]", "link": "[fe80::1%eth0]",
	}
	if len(got) != len(want) {
		t.Errorf("names %v, want %v", got, want)
	}
	for name, w := range want {
		if fmt.Sprint(got[name]) != w {
			t.Errorf("%s: %v, want %s", name, got[name], w)
		}
	}
}

// TestLongLineInHostsFile: a line of any length hides none of its names, and none of
// the lines behind it.
func TestLongLineInHostsFile(t *testing.T) {
	got := readHosts("10.0.0.1 first" + strings.Repeat(" many", 1<<16) + " last\n10.0.0.2 next\n")
	for name, want := range map[string]string{"first": "[10.0.0.1]", "last": "[10.0.0.1]", "next": "[10.0.0.2]"} {
		if fmt.Sprint(got[name]) != want {
			t.Errorf("%s: %v, want %s", name, got[name], want)
		}
	}
}

// FuzzHosts checks that reading any hosts file gives names in lower case, each
// with at least one address, and that writing those out and reading them again
// gives the same.
func FuzzHosts(f *testing.F) {
	for _, s := range hostsSeeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := readHosts(text)
		var b strings.Builder
		for name, list := range got {
			if len(list) == 0 || name != hostsKey(name) && name != hostsKey(name)+"." {
				t.Fatalf("%q: %v", name, list)
			}
			for _, a := range list {
				fmt.Fprintf(&b, "%s %s.\n", a, name)
			}
		}
		again := readHosts(b.String())
		for name, list := range got {
			if !slices.Equal(again[name], list) {
				t.Errorf("%q: %v, again %v", name, list, again[name])
			}
		}
	})
}

func write(t *testing.T, path, text string, at time.Time) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
}

func TestFilesAreReadAgainWhenTheyChange(t *testing.T) {
	dir := t.TempDir()
	resolv, hosts := filepath.Join(dir, "resolv.conf"), filepath.Join(dir, "hosts")
	var log bytes.Buffer
	s := newSystem(resolv, hosts, slog.New(slog.NewTextHandler(&log, nil)))
	want := func(what string, server, a string) {
		t.Helper()
		set, names := s.current()
		if set.servers[0] != netip.MustParseAddrPort(server) {
			t.Errorf("%s: server %s, want %s", what, set.servers[0], server)
		}
		if got := fmt.Sprint(names["a"]); got != a {
			t.Errorf("%s: a is %s, want %s", what, got, a)
		}
	}
	at := time.Unix(1e9, 0)
	want("no files", "127.0.0.1:53", "[]")
	write(t, resolv, "nameserver 10.0.0.1\n", at)
	write(t, hosts, "10.1.0.1 a\n", at)
	want("files came", "10.0.0.1:53", "[10.1.0.1]")
	before, _ := s.current()
	if again, _ := s.current(); again != before {
		t.Error("a file that did not change was read again")
	}
	write(t, resolv, "nameserver 10.0.0.2\n", at.Add(time.Second))
	want("one changed", "10.0.0.2:53", "[10.1.0.1]")
	write(t, hosts, "10.1.0.25 a\n", at)
	want("another size", "10.0.0.2:53", "[10.1.0.25]")
	write(t, hosts+".new", "10.1.0.37 a\n", at)
	if err := os.Rename(hosts+".new", hosts); err != nil {
		t.Fatal(err)
	}
	want("replaced", "10.0.0.2:53", "[10.1.0.37]")
	if err := os.Remove(resolv); err != nil {
		t.Fatal(err)
	}
	want("gone", "10.0.0.2:53", "[10.1.0.37]")
	ln, err := net.Listen("unix", resolv) // which cannot be opened
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	want("not a file", "10.0.0.2:53", "[10.1.0.37]")
	if log.Len() > 0 {
		t.Errorf("log: %s", &log)
	}
	if err := os.Truncate(hosts, maxSystemFile+1); err != nil {
		t.Fatal(err)
	}
	want("too large", "10.0.0.2:53", "[10.1.0.37]")
	want("still too large", "10.0.0.2:53", "[10.1.0.37]")
	if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "file="+hosts) {
		t.Errorf("log of a file that is too large: %s", got)
	}
	NewClient(ClientConfig{ResolvConf: resolv, Hosts: hosts}).system.current() // warns nobody
}
