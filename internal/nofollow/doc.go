// Package nofollow provides the flag that prevents opening a file through a symbolic
// link.
package nofollow
