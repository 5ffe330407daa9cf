package main

import (
	"net"
	"strings"
	"time"

	"golang.org/x/net/ipv4"
)

// sender sends packets to one address, round robin.
type sender struct {
	conn    net.Conn
	batch   *ipv4.PacketConn // for UDP: several datagrams with one call
	packets [][]byte
	next    int
	msgs    []ipv4.Message
}

// batchSize is the number of packets per system call.
const batchSize = 16

func newSender(address string, packets [][]byte) (*sender, error) {
	network, place, _ := strings.Cut(address, "://")
	if network == "unixlines" {
		network = "unix"
	}
	conn, err := net.Dial(network, place)
	if err != nil {
		return nil, err
	}
	s := &sender{conn: conn, packets: packets}
	if u, ok := conn.(*net.UDPConn); ok {
		s.batch = ipv4.NewPacketConn(u)
	}
	if u, ok := conn.(*net.UnixConn); ok {
		if err := u.SetWriteBuffer(4 << 20); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *sender) close() { s.conn.Close() }

// send sends n packets and returns the number sent.
func (s *sender) send(n int) (sent int, err error) {
	for sent < n {
		k := min(batchSize, n-sent)
		if s.batch == nil {
			for range k {
				if _, err := s.conn.Write(s.take()); err != nil {
					return sent, err
				}
				sent++
			}
		} else {
			s.msgs = s.msgs[:0]
			for range k {
				s.msgs = append(s.msgs, ipv4.Message{Buffers: [][]byte{s.take()}})
			}
			for msgs := s.msgs; len(msgs) > 0; {
				m, err := s.batch.WriteBatch(msgs, 0)
				if err != nil {
					return sent, err
				}
				msgs = msgs[m:]
				sent += m
			}
		}
	}
	return sent, nil
}

// take returns the next packet.
func (s *sender) take() []byte {
	p := s.packets[s.next]
	if s.next++; s.next == len(s.packets) {
		s.next = 0
	}
	return p
}

// sendFor sends rate packets a second for a time, or as many as possible if rate is
// 0. After a delay it catches up by at most 10 ms.
func (s *sender) sendFor(length time.Duration, rate int) (sent int, err error) {
	start := time.Now()
	if rate == 0 {
		for time.Since(start) < length {
			n, err := s.send(batchSize)
			if sent += n; err != nil {
				return sent, err
			}
		}
		return sent, nil
	}
	last := start
	owed := 0.0
	for {
		now := time.Now()
		if now.Sub(start) >= length {
			return sent, nil
		}
		owed += min(now.Sub(last), 10*time.Millisecond).Seconds() * float64(rate)
		last = now
		n, err := s.send(int(owed))
		if sent += n; err != nil {
			return sent, err
		}
		owed -= float64(n)
		time.Sleep(time.Millisecond)
	}
}
