// Package accesslog writes one line per request to a file.
//
//	log, err := accesslog.New(accesslog.Config{Path: "/var/log/admin.log"})
//	go log.Run(ctx)
//	log.Log(&accesslog.Entry{Start: start, Method: "GET", Target: "/stats", Status: 200})
//	log.Reopen() // after the file was rotated
//
// A format of operators such as %RESPONSE_CODE% defines the line. Request values are
// escaped, so each request is exactly one line. Lines are buffered; logging never
// waits for the disk. All methods are safe for concurrent use.
package accesslog
