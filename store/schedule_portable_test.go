//go:build schedule && (!gc || !go1.26 || go1.27 || !amd64 || race || msan || asan || purego)

package store

func ownSlot(*Counter, int) {}
