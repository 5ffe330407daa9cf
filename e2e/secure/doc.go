// Package secure asks the daemon with curl as the documentation says: with
// tokens, with certificates, as a user of a unix socket, and for its health.
package secure
