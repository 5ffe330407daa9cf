// Package certs loads the certificates and keys of TLS listeners, and reloads
// them while connections are open.
//
//	reg := &certinfo.Registry{}
//	server, err := certs.Load(reg, certs.Files{Chain: "edge.pem", Key: "edge-key.pem"})
//	ln := tls.NewListener(inner, server.Config())
//	err = server.Reload() // new files for new connections
//
// A program that loads certificates itself describes them with [Parse] and adds
// them to the registry. All methods are safe for concurrent use.
package certs
