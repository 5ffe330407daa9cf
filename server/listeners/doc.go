// Package listeners keeps track of the listeners of a server: their addresses, and
// how to stop them.
//
//	reg := listeners.New(listeners.Config{StartDrain: life.StartDrain})
//	err := reg.Add(listeners.Listener{
//		Name: "ingress", Direction: listeners.Inbound,
//		Addresses: []listeners.Address{listeners.FromNet(ln.Addr())},
//		Stop: func() { ln.Close() },
//	})
//	reg.Drain(true) // stops inbound listeners; no more can be added from here on
//
// A stopped listener stays in the list. All methods are safe for concurrent use; the
// functions of listeners are called without holding a lock.
package listeners
