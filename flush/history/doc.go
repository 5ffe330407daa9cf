// Package history remembers what changed in the last flushes of a store, and in
// coarser steps in the last hour and day, within a budget of bytes.
//
//	h := history.New(history.Config{Store: st})
//	scheduler, err := flush.New(flush.Config{Store: st, After: []func(*store.Snapshot){h.Add}})
//	moment, err := h.At(time.Now().Add(-30 * time.Second))
//
// It keeps changes, not values: a flush costs memory and time for the stats that
// changed in it alone, two to three bytes for a counter. Values of earlier moments
// are the values of the last flush less the changes since. Writers are not slowed down.
//
// When the budget is short, the oldest part of the coarsest steps goes first.
// Answers say since when they are complete.
package history
