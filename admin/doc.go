// Package admin is the administration server: an endpoint table, the HTTP
// server that serves it, and the checks that stand in front of it.
//
//	srv, err := admin.New(admin.Config{Address: "127.0.0.1:9901", Store: st})
//	if err != nil { ... }
//	if err := srv.Listen(); err != nil { ... } // srv.Addr() is known from here on
//	err = srv.Run(ctx)                         // until ctx ends
//
// What the endpoints show and change comes from [Sources], small interfaces
// that the program around the server fills. Endpoints of its own are added with
// [Server.Handle]; they are rows of the same table, pass the same checks and
// appear in the same lists. [Server.Request] asks without a socket.
//
// # Requests
//
// A request passes, in this order: framing and limits, the host check, the
// cross-site check (all methods but GET and HEAD), authentication if there is
// any, the allow list of paths, the look-up of the path, the role that it needs,
// the mode, the method, its parameters, and for endpoints with large answers a
// gate that lets few of them run at a time. The path is the raw request target
// up to the first question mark, compared byte for byte.
//
// # Concurrency
//
// Each connection has a goroutine, which runs the handlers of its requests one
// after the other. A handler writes its answer itself: small ones are kept back
// and sent with their length, larger ones go out in chunks as they are made,
// each under a deadline of its own, so that a client that stops reading is
// dropped. No handler waits for another one.
package admin
