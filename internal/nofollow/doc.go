// Package nofollow holds the flag that keeps a file from being opened through a
// symbolic link.
package nofollow
