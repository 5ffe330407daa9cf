package main

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
)

// dropStartPages removes the pages of the executable file from the memory of the
// process. Pages that only the start needed, such as descriptors and tables of unused
// features, are not loaded again; the others return from the page cache when they are
// used.
func dropStartPages() {
	exe, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return
	}
	for _, m := range cleanMappings(maps, exe) {
		// An error leaves the pages where they are.
		_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, m.start, m.end-m.start, syscall.MADV_DONTNEED)
	}
}

// mapping is a range of addresses.
type mapping struct{ start, end uintptr }

// cleanMappings returns the mappings of a file that cannot have been written, from
// the text of /proc/self/maps.
func cleanMappings(maps []byte, file string) (list []mapping) {
	for l := range bytes.Lines(maps) {
		// start-end permissions offset device inode file
		f := bytes.SplitN(bytes.TrimSpace(l), []byte(" "), 6)
		if len(f) < 6 || len(f[1]) != 4 || f[1][1] == 'w' || string(bytes.TrimSpace(f[5])) != file {
			continue
		}
		from, to, _ := bytes.Cut(f[0], []byte("-"))
		start, err1 := strconv.ParseUint(string(from), 16, strconv.IntSize)
		end, err2 := strconv.ParseUint(string(to), 16, strconv.IntSize)
		if err1 == nil && err2 == nil && start < end {
			list = append(list, mapping{uintptr(start), uintptr(end)})
		}
	}
	return list
}
