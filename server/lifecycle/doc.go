// Package lifecycle knows in which state a server is, what it still waits for,
// whether its health check was failed by hand, and how far a drain has come.
//
//	life := lifecycle.New(lifecycle.Config{DrainTime: 10 * time.Minute})
//	rules := life.NewManager(lifecycle.Listener, "ingress").Add("rules", nil)
//	life.Initialize(nil) // INITIALIZING until every manager and target is ready
//	rules.Ready()        // LIVE
//
// All methods are safe for concurrent use. Reading the state, the health flag
// and [Server.ShouldClose] takes no lock, so a proxy may ask for each request.
package lifecycle
