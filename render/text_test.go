package render

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/store"
)

// TestReceivedMarkAfterSpills has a stat of the program whose name was at the begin of the
// buffer, where the lines of hosts begin with the name of a received histogram later.
func TestReceivedMarkAfterSpills(t *testing.T) {
	st := newStore(store.Options{})
	st.Root().Counter("as.long.as.thatX")
	st.ScopeWith("", store.ScopeOptions{Network: true}).Histogram("cluster.checkout", store.Unspecified)
	var out bytes.Buffer
	err := Text(&out, st, Options{Endpoints: func(yield func(*Endpoint) bool) {
		for i := range 3 * bufferSize / 60 {
			if !yield(&Endpoint{"checkout", fmt.Sprintf("10.0.%d.%d:80", i/250, i%250), []EndpointStat{{"cx_total", false, 1}}}) {
				return
			}
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if text := out.String(); !strings.Contains(text, "\ncluster.checkout: ") {
		t.Errorf("the end is %q", text[len(text)-100:])
	}
}
