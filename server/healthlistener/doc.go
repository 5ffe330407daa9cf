// Package healthlistener answers health checks, for example by load balancers, on a
// separate address that can be open to more machines than the administration port.
//
//	l, err := healthlistener.New(healthlistener.Config{
//		Name: "health", Address: "0.0.0.0:8080", State: func() (string, bool) { return "LIVE", true },
//	})
//	err = l.Listen() // l.Addr() is known from here on
//	err = l.Run(ctx)
//
// It answers every path the same way: 200 while the server is healthy, 503 otherwise,
// with the name of the state as the body. All methods are safe for concurrent use.
package healthlistener
