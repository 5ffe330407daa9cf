// Package browser opens the pages of the running daemon in a browser. They must work
// with and without scripts and obey their own policy, and foreign pages must not
// affect the daemon.
package browser
