// Package secure queries the daemon with curl as documented: with tokens, with
// certificates, as a user of a unix socket, and for its health.
package secure
