package admin

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/store"
)

// BenchmarkReady sends requests over one kept-alive connection.
func BenchmarkReady(b *testing.B) {
	s := start(b, Config{})
	c, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	raw := []byte(request("GET /ready HTTP/1.1", "User-Agent: bench", "Accept: */*"))
	buf := make([]byte, 4096)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Write(raw); err != nil {
			b.Fatal(err)
		}
		if n, err := c.Read(buf); err != nil || !strings.HasSuffix(string(buf[:n]), "LIVE\n") {
			b.Fatalf("%q, %v", buf[:n], err)
		}
	}
}

// BenchmarkScrape reads 100,000 counters.
func BenchmarkScrape(b *testing.B) {
	st := store.New(store.Options{})
	for i := range 1000 {
		sc := st.Scope(fmt.Sprintf("cluster.service_%d", i))
		for j := range 100 {
			sc.Counter(fmt.Sprintf("upstream_rq_%d", j)).Inc()
		}
	}
	s := start(b, Config{Store: st})
	for _, path := range []string{"/stats", "/stats?format=json", "/stats/metrics"} {
		for _, encoding := range []string{"identity", "gzip", "zstd"} {
			b.Run(fmt.Sprintf("path=%s/encoding=%s", strings.NewReplacer("/", ".", "?", ".", "=", ".").Replace(path[1:]), encoding), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					c, err := net.Dial("tcp", s.Addr().String())
					if err != nil {
						b.Fatal(err)
					}
					io.WriteString(c, request("GET "+path+" HTTP/1.1", "Connection: close", "Accept-Encoding: "+encoding))
					n, err := io.Copy(io.Discard, c)
					if err != nil || n < 10_000 {
						b.Fatal(n, err)
					}
					b.SetBytes(n)
					c.Close()
				}
			})
		}
	}
}
