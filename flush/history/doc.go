// Package history remembers what changed in the last flushes of a store, and in
// coarser steps in the last hour and day, within a budget of bytes.
//
//	h := history.New(history.Config{Store: st})
//	scheduler, err := flush.New(flush.Config{Store: st, After: []func(*store.Snapshot){h.Add}})
//	moment, err := h.At(time.Now().Add(-30 * time.Second))
//
// It keeps changes, not values: a flush costs memory and time for the stats
// that changed in it alone, two to three bytes for a counter. An earlier value
// is the value of the last flush minus the changes since. Writers are not
// slowed down.
//
// When the budget is exhausted, the oldest of the coarsest steps are dropped
// first. Results include the time since which they are complete.
package history
