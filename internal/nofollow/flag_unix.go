//go:build unix

package nofollow

import "syscall"

// Flag, given to os.OpenFile, makes it refuse a path that ends in a symbolic
// link. It is 0 on systems that have no such flag.
const Flag = syscall.O_NOFOLLOW
