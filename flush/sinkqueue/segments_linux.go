package sinkqueue

import (
	"encoding/binary"
	"unsafe"

	"golang.org/x/sys/unix"
)

// segmentSize appends the control message that makes the system cut the data into
// datagrams of a size.
func segmentSize(dst []byte, size int) []byte {
	at := len(dst)
	dst = append(dst, make([]byte, unix.CmsgSpace(2))...)
	var h unix.Cmsghdr
	h.Level, h.Type = unix.IPPROTO_UDP, unix.UDP_SEGMENT
	h.SetLen(unix.CmsgLen(2))
	copy(dst[at:], unsafe.Slice((*byte)(unsafe.Pointer(&h)), unsafe.Sizeof(h)))
	binary.NativeEndian.PutUint16(dst[at+unix.CmsgLen(0):], uint16(size))
	return dst
}
