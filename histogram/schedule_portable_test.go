//go:build schedule && (!amd64 || race || msan || asan || purego)

package histogram

func ownSlot(*Histogram, int) {}
