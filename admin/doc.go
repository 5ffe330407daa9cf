// Package admin implements the administration server: an endpoint table, an HTTP
// server, and the checks that every request has to pass.
//
//	srv, err := admin.New(admin.Config{Address: "127.0.0.1:9901", Store: st})
//	if err != nil { ... }
//	if err := srv.Listen(); err != nil { ... } // srv.Addr() is known from here on
//	err = srv.Run(ctx)                         // until ctx ends
//
// The endpoints read and change [Sources]: functions and small interfaces that
// the program supplies. A program adds its own endpoints with [Server.Handle];
// they are rows of the same table, with the same checks, and appear in the same
// lists. The server is also a [net/http.Handler], and [Server.Request] works
// without a socket.
//
// # Requests
//
// A request passes these checks in order: framing and limits, the host check,
// the cross-site check (all methods except GET and HEAD), authentication if
// configured, the allow list of paths, the path lookup, the required role, the
// mode, the method, its parameters, and for large responses a gate that runs
// only a few at once. The path is the raw request target up to the first
// question mark, compared byte for byte.
//
// # Concurrency
//
// Each connection has a goroutine, which runs the handlers of its requests in
// order. Small responses are buffered and sent with their length. Larger ones
// are sent in chunks, each with its own deadline, so that a client that stops
// reading is disconnected. No handler waits for another one.
package admin
