// Package lb picks hosts: round robin, least request, random, ring hash,
// Maglev, subsets of these, and original destination.
//
//	b := lb.New(lb.Config{Policy: lb.LeastRequest})
//	b.Update(sets, nil)          // one immutable host.Set per priority
//	h := b.Pick(&lb.Context{})   // nil: no host
//
// Update is the slow side: off the request path, it computes loads, panic mode,
// locality weights, rings and tables from the sets, and publishes them behind
// one atomic pointer. Pick is the fast side: it takes no lock, allocates
// nothing, and may be called from any number of goroutines, even while an
// Update runs; it then sees the sets before or after.
//
// Weighted picks need a schedule that moves with every pick. Each scheduler
// slot (P) has its own, which only a goroutine pinned to that slot touches.
package lb
