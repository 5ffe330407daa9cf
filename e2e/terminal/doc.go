// Package terminal runs statsd-admin top in a terminal of tmux.
package terminal
