package clients

import (
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/DataDog/datadog-go/v5/statsd"

	"github.com/statsd-admin/statsd-admin/e2e/daemon"
)

// The numbers of metrics that each run sends.
const (
	increments = 20_000
	hosts      = 10 // tag values that the increments are spread over
	sampled    = 4_000
	timings    = 1_000
	members    = 500
)

// TestDatadogGo sends all kinds of metrics over each transport. The results are
// exact, apart from datagrams that the kernel reports as dropped.
func TestDatadogGo(t *testing.T) {
	modes := map[string][]statsd.Option{
		"plain":      {statsd.WithoutClientSideAggregation()},
		"aggregated": {statsd.WithExtendedClientSideAggregation()},
	}
	addresses := map[string]func(*daemon.Daemon) string{
		"udp":        func(d *daemon.Daemon) string { return d.Address("udp") },
		"unixgram":   func(d *daemon.Daemon) string { return "unixgram://" + d.Address("unixgram") },
		"unixstream": func(d *daemon.Daemon) string { return "unixstream://" + d.Address("unixstream") },
		"unix":       func(d *daemon.Daemon) string { return "unix://" + d.Address("unixgram") }, // finds out the kind
	}
	for mode, options := range modes {
		for transport, address := range addresses {
			t.Run(mode+"/"+transport, func(t *testing.T) {
				d := daemon.Start(t, daemon.Config{})
				options := append([]statsd.Option{
					statsd.WithTelemetryAddr(elsewhere(t)), statsd.WithoutOriginDetection(), statsd.WithNamespace("shop."),
					statsd.WithTags([]string{"env:test"}), statsd.WithMutexMode(),
					statsd.WithSenderQueueSize(100_000), statsd.WithWriteTimeout(10 * time.Second),
				}, options...)
				c := connect(t, address(d), options)
				sendAll(t, c)
				sent := c.GetTelemetry()
				if sent.TotalPayloadsDropped != 0 || sent.TotalPayloadsSent == 0 {
					t.Fatalf("the client sent %d packets and dropped %d itself", sent.TotalPayloadsSent, sent.TotalPayloadsDropped)
				}
				listener := transport
				if listener == "unix" {
					listener = "unixgram"
				}
				s := d.Wait("all packets", func(s daemon.Stats) bool {
					return s.Number("ingest.packets.listener."+listener)+s.Number("ingest.kernel_drops.listener."+listener) == float64(sent.TotalPayloadsSent)
				})
				if drops := s.Number("ingest.kernel_drops.listener." + listener); drops > 0 {
					if transport != "udp" {
						t.Fatalf("a transport without loss lost %v packets", drops)
					}
					t.Logf("the kernel dropped %v of %d packets: no exact counts", drops, sent.TotalPayloadsSent)
					return
				}
				bytes := sent.TotalBytesSent
				if listener == "unixstream" {
					bytes += 4 * sent.TotalPayloadsSent // the lengths before the frames
				}
				checkAll(t, d, listener, float64(bytes))
				checkSet(t, d, connect(t, address(d), options))
			})
		}
	}
}

func connect(t *testing.T, address string, options []statsd.Option) *statsd.Client {
	t.Helper()
	c, err := statsd.New(address, options...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// elsewhere returns an address that discards the client's own telemetry. Without it,
// the client counts nothing.
func elsewhere(t *testing.T) string {
	t.Helper()
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c.LocalAddr().String()
}

func sendAll(t *testing.T, c *statsd.Client) {
	t.Helper()
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range increments {
		do(c.Incr("orders", []string{fmt.Sprintf("host:h%d", i%hosts)}, 1))
	}
	do(c.Count("bytes", 1<<40, nil, 1))
	for range sampled {
		do(c.Incr("sampled", nil, 0.5))
	}
	do(c.Gauge("temperature", 3.25, nil, 1))
	do(c.Gauge("temperature", 17.5, nil, 1))
	do(c.Gauge("depth", -4, nil, 1)) // a sign makes it relative to 0
	for i := range timings {
		v := float64(i%100 + 1)
		do(c.TimeInMilliseconds("latency", v, nil, 1))
		do(c.Timing("precise", time.Duration(i%100+1)*100*time.Microsecond, nil, 1))
		do(c.Histogram("size", v, []string{"kind:h"}, 1))
		do(c.Distribution("spread", v, nil, 1))
	}
	for _, kind := range []statsd.EventAlertType{statsd.Info, statsd.Success, statsd.Warning, statsd.Error} {
		e := statsd.NewEvent("title with | and ünicode", "two\nlines")
		e.AlertType = kind
		e.Tags = []string{"a:b"}
		do(c.Event(e))
	}
	for _, status := range []statsd.ServiceCheckStatus{statsd.Ok, statsd.Warn, statsd.Critical, statsd.Unknown, statsd.Ok} {
		sc := statsd.NewServiceCheck("database", status)
		sc.Message, sc.Hostname = "m: all is said", "h"
		do(c.ServiceCheck(sc))
	}
	do(c.Close())
}

func checkAll(t *testing.T, d *daemon.Daemon, listener string, bytes float64) {
	t.Helper()
	got := d.Stats()
	want := map[string]float64{
		"shop.bytes.env.test":                        1 << 40,
		"shop.temperature.env.test":                  17.5,
		"shop.depth.env.test":                        -4,
		"ingest.bytes.listener." + listener:          bytes,
		"ingest.tag_errors.listener." + listener:     0,
		"ingest.unknown_fields.listener." + listener: 0,
		"ingest.type_conflicts":                      0,
		"ingest.series_created.kind.histogram":       4,
		"ingest.events.alert_type.info":              1,
		"ingest.events.alert_type.success":           1,
		"ingest.events.alert_type.warning":           1,
		"ingest.events.alert_type.error":             1,
		"ingest.service_checks.status.ok":            2,
		"ingest.service_checks.status.warning":       1,
		"ingest.service_checks.status.critical":      1,
		"ingest.service_checks.status.unknown":       1,
	}
	for h := range hosts {
		want[fmt.Sprintf("shop.orders.env.test.host.h%d", h)] = increments / hosts
	}
	for name, v := range want {
		if value, ok := got[name]; !ok || got.Number(name) != v {
			t.Errorf("%s: %q, want %v", name, value, v)
		}
	}
	if v := got.Sum("ingest.rejected."); v != 0 {
		t.Errorf("%v lines were rejected", v)
	}
	if v := got.Sum("ingest.limited."); v != 0 {
		t.Errorf("%v samples were over a limit", v)
	}
	if _, ok := got["ingest.limited.limit.none"]; ok {
		t.Error("a limit called none")
	}
	checkSampled(t, got.Number("shop.sampled.env.test"), sampled)
	metrics := d.Metrics(fmt.Sprintf(`shop_spread_count{env="test"} %d`, timings))
	checkHistogram(t, metrics, "shop_latency", `env="test"`, timings, 50_500)
	checkHistogram(t, metrics, "shop_precise", `env="test"`, timings, 5_050)
	checkHistogram(t, metrics, "shop_size", `env="test",kind="h"`, timings, 50_500)
	checkHistogram(t, metrics, "shop_spread", `env="test"`, timings, 50_500)
}

// checkSet repeatedly sends the members of a set, so that every interval has all of
// them, and waits for their number.
func checkSet(t *testing.T, d *daemon.Daemon, c *statsd.Client) {
	t.Helper()
	stop := make(chan struct{})
	done := make(chan error)
	go func() {
		var err error
		for i := 0; err == nil; i++ {
			select {
			case <-stop:
				done <- c.Close()
				return
			default:
			}
			err = c.Set("users", fmt.Sprint("u", i%members), nil, 1)
			if err == nil && i%members == members-1 {
				err = c.Flush()
			}
		}
		<-stop
		done <- err
	}()
	s := d.Wait("all members of a set", func(s daemon.Stats) bool { return s.Number("shop.users.env.test") >= members })
	if v := s.Number("shop.users.env.test"); v != members {
		t.Errorf("a set of %d members has %v", members, v)
	}
	close(stop)
	if err := <-done; err != nil {
		t.Error(err)
	}
}
