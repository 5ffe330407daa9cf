package history_test

import (
	"fmt"
	"time"

	"github.com/statsd-admin/statsd-admin/flush/history"
	"github.com/statsd-admin/statsd-admin/store"
)

func Example() {
	now := time.Unix(1_700_000_000, 0)
	st := store.New(store.Options{Now: func() time.Time { return now }})
	h := history.New(history.Config{Store: st})
	requests := st.Root().Counter("requests")
	for range 3 {
		requests.Add(10)
		now = now.Add(time.Second)
		snap := st.Flush(store.FlushOptions{}) // a flush.Scheduler does both
		h.Add(snap)
		snap.Close()
	}
	m, err := h.At(now.Add(-1500 * time.Millisecond))
	if err != nil {
		fmt.Println(err)
		return
	}
	v := st.View()
	defer v.Close()
	if c, ok := v.Find("requests"); ok {
		c.SetRaw(m.Raw(&c))
		fmt.Println(now.Sub(m.Time()), "ago:", c.Uint())
	}
	// Output: 2s ago: 10
}
