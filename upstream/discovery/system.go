package discovery

import (
	"bufio"
	"bytes"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/miekg/dns"

	"github.com/statsd-admin/statsd-admin/internal/boundedfile"
)

// maxSystemFile bounds the size of a system file, in bytes.
const maxSystemFile = 16 << 20

// systemFile is a file that is read again when it changes. The last good content stays
// in use.
type systemFile struct {
	path string
	info os.FileInfo // of the file read last, or too large; nil: none
}

// changed reads the file if it has changed. A file that cannot be read is tried again.
func (f *systemFile) changed(log *slog.Logger) ([]byte, bool) {
	info, err := os.Stat(f.path)
	if err != nil || f.info != nil && os.SameFile(info, f.info) && info.Size() == f.info.Size() && info.ModTime().Equal(f.info.ModTime()) {
		return nil, false
	}
	if info.Size() > maxSystemFile { // a part of it could give hosts of half a name
		f.info = info
		log.Warn("file is too large, keeping what it had", "file", f.path, "limit", maxSystemFile)
		return nil, false
	}
	text, err := boundedfile.Read(f.path, maxSystemFile)
	if err != nil {
		return nil, false
	}
	f.info = info
	return text, true
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
	s.settings = readSettings(strings.NewReader(""))
	return s
}

// current returns the current content of the files.
func (s *system) current() (*settings, map[string][]netip.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if text, ok := s.resolv.changed(s.log); ok {
		s.settings = readSettings(bytes.NewReader(text))
	}
	if text, ok := s.hosts.changed(s.log); ok {
		s.addresses = readHosts(bytes.NewReader(text))
	}
	return s.settings, s.addresses
}

// readSettings reads a resolver configuration. It skips invalid lines. Without servers
// it uses the settings of this machine.
func readSettings(r io.Reader) *settings {
	out := &settings{ndots: 1, timeout: 5 * time.Second, attempts: 2}
	if c, err := dns.ClientConfigFromReader(shortLines(r)); err == nil {
		out.search, out.ndots = c.Search, c.Ndots
		out.timeout = time.Duration(min(c.Timeout, 30)) * time.Second
		out.attempts = min(c.Attempts, 5)
		for _, text := range c.Servers {
			if a, err := netip.ParseAddr(text); err == nil && len(out.servers) < 3 {
				out.servers = append(out.servers, netip.AddrPortFrom(a, 53))
			}
		}
	}
	if len(out.servers) == 0 {
		out.servers = []netip.AddrPort{netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), 53), netip.AddrPortFrom(netip.IPv6Loopback(), 53)}
	}
	return out
}

// shortLines returns the lines of r without those at which the parser of resolver
// configurations would stop.
func shortLines(r io.Reader) io.Reader {
	var kept bytes.Buffer
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxSystemFile+1) // no line is longer
	for lines.Scan() {
		if line := lines.Bytes(); len(line) < bufio.MaxScanTokenSize {
			kept.Write(line)
			kept.WriteByte('\n')
		}
	}
	return &kept
}

// names returns the full names to try for name, in order.
func (s *settings) names(name string, noSearch bool) []string {
	full := dns.Fqdn(name)
	list := []string{full}
	if dns.IsFqdn(name) || noSearch {
		return valid(list)
	}
	var searched []string
	for _, domain := range s.search {
		if domain != "." {
			searched = append(searched, dns.Fqdn(full+domain))
		}
	}
	if strings.Count(name, ".") >= s.ndots {
		return valid(append(list, searched...))
	}
	return valid(append(searched, list...))
}

// valid drops names that cannot be queried.
func valid(names []string) []string {
	kept := names[:0]
	for _, n := range names {
		if _, ok := dns.IsDomainName(n); ok && n != "." {
			kept = append(kept, n)
		}
	}
	return kept
}

// readHosts reads a hosts file. It skips invalid lines.
func readHosts(r io.Reader) map[string][]netip.Addr {
	out := make(map[string][]netip.Addr)
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxSystemFile+1) // no line is longer
	for lines.Scan() {
		line, _, _ := strings.Cut(lines.Text(), "#")
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
