package sinkqueue

import (
	"errors"
	"net"
	"slices"
	"syscall"
	"time"
)

// Limits of the datagrams that one system call sends. A burst of so few fills a third of
// the usual buffer of a receiver, and more would save little.
const (
	runPackets = 32
	runBytes   = 60 << 10
)

// Packed is a packet for [Queue.AddAll].
type Packed struct {
	Data    []byte
	Metrics int
}

// largestFirst puts packets in an order with long runs of equal sizes.
func largestFirst(packets []Packed) {
	slices.SortFunc(packets, func(a, b Packed) int { return len(b.Data) - len(a.Data) })
}

// runLength returns how many packets at the head of a queue one system call can send:
// equally long packets of one AddAll, and then a shorter one.
func runLength(queue []packet) int {
	first := queue[0]
	if first.group == 0 {
		return 1
	}
	n, size := 1, len(first.data)
	for n < min(len(queue), runPackets) && queue[n].group == first.group {
		if size += len(queue[n].data); size > runBytes || len(queue[n].data) > len(first.data) {
			break
		}
		if n++; len(queue[n-1].data) < len(first.data) {
			break
		}
	}
	return n
}

// messageWriter is implemented by [net.UDPConn].
type messageWriter interface {
	WriteMsgUDP(b, oob []byte, addr *net.UDPAddr) (n, oobn int, err error)
}

// SendAll sends each packet as a datagram, all in one system call, as
// [Config].SendAll requires. The packets must be equally long except the last,
// which can be shorter.
func (c *Conn) SendAll(packets [][]byte) bool {
	w, ok := c.open.(messageWriter)
	size := len(packets[0])
	if !ok || c.whole || size > c.limit || c.outdated() {
		return false
	}
	option := segmentSize(c.option[:0], size)
	if len(option) == 0 || c.open.SetWriteDeadline(time.Now().Add(c.cfg.Timeout)) != nil {
		return false
	}
	c.option, c.joined = option, c.joined[:0]
	for _, p := range packets {
		c.joined = append(c.joined, p...)
	}
	_, _, err := w.WriteMsgUDP(c.joined, option, nil)
	if errors.Is(err, syscall.ECONNREFUSED) { // reports that earlier datagrams were lost
		c.lost()
		_, _, err = w.WriteMsgUDP(c.joined, option, nil)
	}
	switch {
	case err == nil:
		c.last = len(packets)
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.EMSGSIZE), errors.Is(err, syscall.ENOBUFS): // Send knows what to do
	default:
		c.whole = true
	}
	return err == nil
}
