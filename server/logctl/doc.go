// Package logctl holds the loggers of a server by name, with a level for each
// that can change while the server runs.
package logctl
