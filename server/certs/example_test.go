package certs_test

import (
	"fmt"

	"github.com/statsd-admin/statsd-admin/certinfo"
	"github.com/statsd-admin/statsd-admin/server/certs"
)

// Loading reports the file and the reason of an error.
func ExampleLoad() {
	_, err := certs.Load(new(certinfo.Registry), certs.Files{Chain: "/nonexistent/cert.pem", Key: "/nonexistent/key.pem"})
	fmt.Println(err)
	// Output: certs: stat /nonexistent/cert.pem: no such file or directory
}
