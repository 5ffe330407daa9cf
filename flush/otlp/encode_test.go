package otlp

import (
	"bytes"
	"testing"

	"github.com/statsd-admin/statsd-admin/internal/protobuf"
	"github.com/statsd-admin/statsd-admin/store"
)

// TestRequestsAreKept compares requests, whose lengths take one to three bytes, with the
// messages put together, after all of them were made. None holds much more memory than
// its bytes.
func TestRequestsAreKept(t *testing.T) {
	b := batch{head: protobuf.AppendBytes(nil, 1, "resource"), scope: protobuf.AppendBytes(nil, 1, "scope")}
	b.metrics = make([]byte, b.ahead())
	var m metric
	m.set([]byte("name"), store.Description{})
	var got, want [][]byte
	for _, points := range []int{1, 2, 3, 4, 5, 100, 900, 900, 901, 2000, 3, 700, 1} {
		for n := range points {
			b.open(nil, &m, fieldSum)
			b.begin()
			b.whole(1, 2, uint64(n+points))
		}
		b.close()
		scope := protobuf.AppendBytes(nil, 2, append(bytes.Clone(b.scope), b.metrics[b.ahead():]...))
		want = append(want, protobuf.AppendBytes(nil, 1, append(bytes.Clone(b.head), scope...)))
		got = append(got, b.request())
	}
	for i, request := range got {
		if !bytes.Equal(request, want[i]) {
			t.Errorf("request %d: %q\nwant %q", i, request, want[i])
		}
		if c := cap(request); c > len(request)*4/3+64 {
			t.Errorf("request %d of %d bytes holds %d", i, len(request), c)
		}
	}
}
