package totals_test

import (
	"fmt"
	"time"

	"github.com/statsd-admin/statsd-admin/flush/totals"
	"github.com/statsd-admin/statsd-admin/store"
)

// printer prints the stats to send.
type printer struct{}

func (printer) Write(snap *store.Snapshot, c *store.Cursor, k store.Kind, _ int64) {
	value, _ := snap.Value(c)
	fmt.Println(k, c.Name(), value)
}

func (printer) End(c *store.Cursor, _ store.Kind, _ int64) { fmt.Println("end of", c.Name()) }

func ExampleWalk() {
	st := store.New(store.Options{})
	st.KeepNames()
	walk := totals.Walk{Refresh: time.Hour}
	flush := func() {
		snap := st.Flush(store.FlushOptions{Totals: true})
		defer snap.Close()
		walk.Flush(snap, printer{})
	}
	st.Root().Counter("idle").Inc()
	sc := st.Scope("session")
	busy := sc.Counter("busy")
	busy.Inc()
	flush()
	busy.Add(2)
	flush()
	sc.Close()
	flush()
	// Output:
	// counter idle 1
	// counter session.busy 1
	// counter session.busy 3
	// end of session.busy
}
