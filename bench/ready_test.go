package bench

import (
	"context"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/admin"
)

// BenchmarkReady is a GET of /ready, one after the other, while nobody or
// 8 clients scrape a million series as fast as they can.
func BenchmarkReady(b *testing.B) {
	st, _ := clusters(loadNames())
	for _, c := range []struct {
		name    string
		clients int
	}{{"idle", 0}, {"8-scrapes", 8}} {
		b.Run("during="+c.name, func(b *testing.B) {
			srv, err := admin.New(admin.Config{Address: "127.0.0.1:0", Store: st})
			must(b, err)
			must(b, srv.Listen())
			ctx, cancel := context.WithCancel(context.Background())
			ended := make(chan error)
			go func() { ended <- srv.Run(ctx) }()
			base := "http://" + srv.Addr().String()
			get := func(ctx context.Context, client *http.Client, path string) error {
				r, err := http.NewRequestWithContext(ctx, http.MethodGet, base+path, nil)
				if err != nil {
					return err
				}
				resp, err := client.Do(r)
				if err != nil {
					return err
				}
				defer resp.Body.Close()
				_, err = io.Copy(io.Discard, resp.Body)
				return err
			}
			var scrapes, begun sync.WaitGroup
			begun.Add(c.clients)
			scraping, stop := context.WithCancel(ctx)
			for range c.clients {
				scrapes.Go(func() {
					client := &http.Client{Transport: &http.Transport{DisableCompression: true}}
					err := get(scraping, client, "/stats/prometheus")
					begun.Done()
					for err == nil {
						err = get(scraping, client, "/stats/prometheus")
					}
					client.CloseIdleConnections()
				})
			}
			probe := &http.Client{}
			begun.Wait() // each has read all once
			must(b, get(ctx, probe, "/ready"))
			var took []time.Duration
			b.ResetTimer()
			for b.Loop() {
				start := time.Now()
				must(b, get(ctx, probe, "/ready"))
				took = append(took, time.Since(start))
				b.StopTimer()
				time.Sleep(time.Millisecond) // so that many phases of the scrapes are met
				b.StartTimer()
			}
			b.StopTimer()
			slices.Sort(took)
			b.ReportMetric(percentile(took, 0.5), "p50-ns")
			b.ReportMetric(percentile(took, 0.99), "p99-ns")
			stop()
			scrapes.Wait()
			probe.CloseIdleConnections()
			cancel()
			must(b, <-ended)
		})
	}
}
