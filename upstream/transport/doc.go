// Package transport makes connections to upstream hosts as the cluster resource
// says: in plain text or by TLS, chosen per endpoint, from a given source
// address, with keepalive, socket options and a connect timeout.
//
//	f := transport.New(transport.Config{Registry: certificates})
//	go f.Run(ctx)                       // reloads watched files
//	d, err := f.Dialer(cluster, scope)  // refuses what cannot be in force
//	defer d.Close()
//	d.Follow(ready)                     // the secrets that it names
//	conn, err := d.Dial(ctx, h, transport.Options{})
//
// A Dialer belongs to one version of a cluster. Certificates and keys are read
// when it is made; what cannot be read, or asks for something that is not
// offered here, is an error that names the field. What is a secret of a file or a
// control plane comes later, and again when it changes; connections that are made then
// use it. Everything may be used by any
// number of goroutines. No error holds any key or password.
package transport
