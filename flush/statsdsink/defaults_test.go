package statsdsink

import (
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/flush/sinkqueue"
	"github.com/statsd-admin/statsd-admin/store"
)

// TestDefaults: zero settings mean the defaults of the network, others stay.
func TestDefaults(t *testing.T) {
	for _, tt := range []struct {
		network sinkqueue.Network
		address string
		in      Config
		bytes   int
		timeout time.Duration
	}{
		{"", "127.0.0.1:1", Config{}, 1432, 2 * time.Second},
		{sinkqueue.TCP, "127.0.0.1:1", Config{PacketBytes: -1, Timeout: -1}, 65536, 2 * time.Second},
		{sinkqueue.Unixgram, "/a", Config{PacketBytes: 1, Timeout: 1}, 1, 1},
		{sinkqueue.Unixlines, "/a", Config{}, 8192, 2 * time.Second},
	} {
		tt.in.Options, tt.in.Network, tt.in.Address = sinkqueue.Options{Store: store.New(store.Options{})}, tt.network, tt.address
		s, err := New(tt.in)
		if err != nil {
			t.Fatal(err)
		}
		if s.cfg.PacketBytes != tt.bytes || s.cfg.Timeout != tt.timeout || s.cfg.Format != Plain || s.cfg.Network == "" {
			t.Errorf("%q: %+v", tt.network, s.cfg)
		}
	}
}
