//go:build unix

package nofollow

import "syscall"

// Flag makes os.OpenFile refuse a path that ends in a symbolic link. It is 0 on
// systems without such a flag.
const Flag = syscall.O_NOFOLLOW
