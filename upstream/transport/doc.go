// Package transport connects to upstream hosts as the cluster resource specifies: in
// plain text or by TLS, chosen per endpoint, from a given source address, with
// keepalive, socket options and a connect timeout.
//
//	f := transport.New(transport.Config{Registry: certificates})
//	go f.Run(ctx)                       // reloads watched files
//	d, err := f.Dialer(cluster, scope) // refuses unsupported settings
//	defer d.Close()
//	d.Follow(ready) // subscribes to secrets
//	conn, err := d.Dial(ctx, h, transport.Options{})
//
// A Dialer belongs to one version of a cluster. It reads certificates and keys when
// it is created; unreadable files and unsupported settings are errors that name the
// field. Secrets of files and control planes arrive later and can change; new
// connections use the current version. Everything is safe for concurrent use. No
// error contains keys or passwords.
package transport
