package mapping

import (
	"log/slog"
	"net"
	"reflect"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/statsd_exporter/pkg/event"
	exporterline "github.com/prometheus/statsd_exporter/pkg/line"
	"github.com/statsd-admin/statsd-admin/flush/sinkqueue"
	"github.com/statsd-admin/statsd-admin/flush/statsdsink"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// TestTagFormats: the parser of statsd_exporter reads the names and tags that a sink
// writes in each form of tags.
func TestTagFormats(t *testing.T) {
	for _, format := range []statsdsink.Format{statsdsink.DogStatsD, statsdsink.Influx, statsdsink.Librato, statsdsink.SignalFX} {
		t.Run(string(format), func(t *testing.T) {
			receiver, err := net.ListenPacket("udp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer receiver.Close()
			st := store.New(store.Options{})
			cfg := statsdsink.Config{
				Options: sinkqueue.Options{Store: st, Tags: []tags.Tag{{Name: "dc", Value: "a:b,c"}}},
				Address: receiver.LocalAddr().String(), Format: format,
			}
			cfg.Filter.Kinds = []store.Kind{store.KindCounter}
			sink, err := statsdsink.New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			st.Root().Counter("shop.orders", tags.Tag{Name: "region", Value: "eu"}).Add(3)
			snap := st.Flush(store.FlushOptions{})
			if err := sink.Flush(snap); err != nil {
				t.Fatal(err)
			}
			snap.Close()
			sink.Close()
			sink.Run(t.Context())
			_ = receiver.SetReadDeadline(time.Now().Add(30 * time.Second))
			packet := make([]byte, 2000)
			n, _, err := receiver.ReadFrom(packet)
			if err != nil {
				t.Fatal(err)
			}
			p := exporterline.NewParser()
			p.EnableDogstatsdParsing()
			p.EnableInfluxdbParsing()
			p.EnableLibratoParsing()
			p.EnableSignalFXParsing()
			vec := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "errors"}, []string{"reason"})
			count := func() prometheus.Counter { return prometheus.NewCounter(prometheus.CounterOpts{Name: "n"}) }
			events := p.LineToEvents(string(packet[:n]), *vec, count(), count(), count(), slog.New(slog.DiscardHandler))
			dc := "a_b_c"
			if format == statsdsink.DogStatsD {
				dc = "a:b_c" // the first colon ends the name
			}
			if len(events) != 1 {
				t.Fatalf("%s is read as %d events", packet[:n], len(events))
			}
			want := &event.CounterEvent{CMetricName: "shop.orders", CValue: 3, CLabels: map[string]string{"region": "eu", "dc": dc}}
			if !reflect.DeepEqual(events[0], event.Event(want)) {
				t.Errorf("%s is read as %+v, want %+v", packet[:n], events[0], want)
			}
		})
	}
}
