//go:build !race

package store

// overread reports whether a record can be compared by loads of eight bytes, which
// can reach into the record after it. A mask ignores those bytes.
const overread = true
