// Package lifecycle tracks the state of a server, its pending init targets, the
// manual health check switch, and the progress of drains.
//
//	life := lifecycle.New(lifecycle.Config{DrainTime: 10 * time.Minute})
//	rules := life.NewManager(lifecycle.Listener, "ingress").Add("rules", nil)
//	life.Initialize(nil) // INITIALIZING until every manager and target is ready
//	rules.Ready()        // LIVE
//
// All methods are safe for concurrent use. Reading the state, the health flag and
// [Server.ShouldClose] takes no lock, so a proxy can do it for each request.
package lifecycle
