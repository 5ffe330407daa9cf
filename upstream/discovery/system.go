package discovery

import (
	"log/slog"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/boundedfile"
)

// maxSystemFile bounds the size of a system file, in bytes.
const maxSystemFile = 16 << 20

// maxName bounds a name with its final dot, in bytes.
const maxName = 254

// systemFile is a file that is read again when it changes. The last good content stays
// in use.
type systemFile struct {
	path string
	info os.FileInfo // of the file read last, or too large; nil: none
}

// changed reads the file if it has changed, unless it is too large. A file that cannot be
// read is tried again.
func (f *systemFile) changed() (text []byte, ok, large bool) {
	info, err := os.Stat(f.path)
	if err != nil || f.info != nil && os.SameFile(info, f.info) && info.Size() == f.info.Size() && info.ModTime().Equal(f.info.ModTime()) {
		return nil, false, false
	}
	if info.Size() > maxSystemFile { // a part of it could give hosts of half a name
		f.info = info
		return nil, false, true
	}
	if text, err = boundedfile.Read(f.path, maxSystemFile); err != nil {
		return nil, false, false
	}
	f.info = info
	return text, true, false
}

// system is the DNS configuration of this machine.
type system struct {
	log       *slog.Logger
	mu        sync.Mutex // guards the rest; what the values point to never changes
	resolv    systemFile
	hosts     systemFile
	settings  *settings
	addresses map[string][]netip.Addr // by name in lower case without the last dot
}

// settings are the settings for queries.
type settings struct {
	servers  []netip.AddrPort // at least one
	search   []string
	ndots    int           // names with fewer dots are searched first
	timeout  time.Duration // of one try
	attempts int           // with each server
}

func newSystem(resolv, hosts string, log *slog.Logger) *system {
	s := &system{log: log, resolv: systemFile{path: resolv}, hosts: systemFile{path: hosts}}
	s.settings = readSettings("")
	return s
}

// current returns the current content of the files.
func (s *system) current() (*settings, map[string][]netip.Addr) {
	s.mu.Lock()
	text, ok, largeResolv := s.resolv.changed()
	if ok {
		s.settings = readSettings(string(text))
	}
	text, ok, largeHosts := s.hosts.changed()
	if ok {
		s.addresses = readHosts(string(text))
	}
	now, addresses := s.settings, s.addresses
	s.mu.Unlock()
	for path, large := range map[string]bool{s.resolv.path: largeResolv, s.hosts.path: largeHosts} {
		if large { // without the lock: a logger may need a lookup
			s.log.Warn("file is too large, keeping what it had", "file", path, "limit", maxSystemFile)
		}
	}
	return now, addresses
}

// readSettings reads a resolver configuration. It skips invalid lines. Without servers
// it uses the settings of this machine.
func readSettings(text string) *settings {
	out := &settings{ndots: 1, timeout: 5 * time.Second, attempts: 2}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		values := fields[1:]
		switch fields[0] {
		case "nameserver":
			if len(values) > 0 && len(out.servers) < 3 {
				if a, err := netip.ParseAddr(values[0]); err == nil {
					out.servers = append(out.servers, netip.AddrPortFrom(a, 53))
				}
			}
		case "domain":
			out.search = values[:min(len(values), 1)]
		case "search":
			out.search = values
		case "options":
			for _, option := range values {
				out.option(option)
			}
		}
	}
	if len(out.servers) == 0 {
		out.servers = []netip.AddrPort{netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), 53), netip.AddrPortFrom(netip.IPv6Loopback(), 53)}
	}
	return out
}

// option applies an option of a resolver configuration. A value that is not a number
// counts as the smallest.
func (s *settings) option(text string) {
	name, value, found := strings.Cut(text, ":")
	if !found {
		return
	}
	n, _ := strconv.Atoi(value)
	switch name {
	case "ndots":
		s.ndots = min(max(n, 0), 15)
	case "timeout":
		s.timeout = time.Duration(min(max(n, 1), 30)) * time.Second
	case "attempts":
		s.attempts = min(max(n, 1), 5)
	}
}

// names returns the full names to try for name, in order.
func (s *settings) names(name string, noSearch bool) []string {
	full := absolute(name)
	list := []string{full}
	if full == name || noSearch {
		return valid(list)
	}
	var searched []string
	for _, domain := range s.search {
		if domain != "." {
			searched = append(searched, absolute(full+domain))
		}
	}
	if strings.Count(name, ".") >= s.ndots {
		return valid(append(list, searched...))
	}
	return valid(append(searched, list...))
}

// absolute returns name with a final dot.
func absolute(name string) string { return strings.TrimSuffix(name, ".") + "." }

// valid drops names that cannot be queried.
func valid(names []string) []string {
	return slices.DeleteFunc(names, func(n string) bool {
		if len(n) > maxName {
			return true
		}
		for label := range strings.SplitSeq(n[:len(n)-1], ".") {
			if len(label) == 0 || len(label) > 63 {
				return true
			}
		}
		return false
	})
}

// readHosts reads a hosts file. It skips invalid lines.
func readHosts(text string) map[string][]netip.Addr {
	out := make(map[string][]netip.Addr)
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		a, err := netip.ParseAddr(fields[0])
		if err != nil {
			continue
		}
		for _, name := range fields[1:] {
			key := hostsKey(name)
			out[key] = append(out[key], a)
		}
	}
	return out
}

func hostsKey(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }
