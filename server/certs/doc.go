// Package certs knows the certificates that a server has loaded for TLS, and
// when they expire.
//
//	reg := certs.New(nil)
//	server, err := reg.LoadServer(certs.Files{Chain: "edge.pem", Key: "edge-key.pem"})
//	ln := tls.NewListener(inner, server.Config())
//	err = server.Reload()  // new files for new connections
//	days, any := reg.DaysUntilFirstExpiring()
//
// A program that loads its TLS material itself describes it with [Parse] and
// [Registry.Add]. All methods are safe for concurrent use.
package certs
