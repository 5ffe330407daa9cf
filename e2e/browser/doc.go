// Package browser opens the pages of the running daemon in a browser: they work
// with scripts and without, keep their own rules, and pages of others can do
// nothing to the daemon.
package browser
