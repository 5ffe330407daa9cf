package transport

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/guard"
	"github.com/statsd-admin/statsd-admin/upstream/config"
)

// attemptDelay is the head start of an attempt over the next one.
const attemptDelay = 300 * time.Millisecond

// order returns the addresses in connection order: as many of the first family as c
// says, then alternating between the families (RFC 8305, section 4). A nil c prefers
// the family of the first address by one.
func order(list []config.Address, c *config.HappyEyeballs) []config.Address {
	if len(list) < 2 {
		return list
	}
	v4, turn := is4(list[0]), uint32(1)
	if c != nil {
		v4 = (v4 || c.FirstFamilyV4) && !c.FirstFamilyV6
		turn = max(c.FirstFamilyCount, 1)
	}
	var first, other []config.Address
	for _, a := range list {
		if is4(a) == v4 {
			first = append(first, a)
		} else {
			other = append(other, a)
		}
	}
	out := make([]config.Address, 0, len(list))
	for len(first)+len(other) > 0 {
		n := min(int(turn), len(first))
		out, first = append(out, first[:n]...), first[n:]
		n = min(1, len(other))
		out, other = append(out, other[:n]...), other[n:]
	}
	return out
}

// errPanic is the error of an attempt that panicked.
var errPanic = errors.New("transport: panic")

func is4(a config.Address) bool { return a.IP.Addr().Unmap().Is4() }

// race connects to the addresses in order. Each attempt starts when the previous one
// has failed or after attemptDelay, and the first connection wins (RFC 8305, section
// 5). The others are abandoned before race returns. If all fail, the result is the
// first error, preferring errors that are about the host. A panic counts as a failure
// and is reported to g. list must not be empty.
func race(ctx context.Context, list []config.Address, dial func(context.Context, config.Address) (net.Conn, error), g guard.Guard) (net.Conn, error) {
	if len(list) == 1 {
		return dial(ctx, list[0])
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		conn net.Conn
		err  error
	}
	results := make(chan result)
	timer := time.NewTimer(attemptDelay)
	begun, ended := 0, 0
	begin := func() {
		a := list[begun]
		begun++
		timer.Reset(attemptDelay)
		go func() {
			r := result{err: errPanic}
			g.Run("connection", func() { r.conn, r.err = dial(ctx, a) })
			results <- r
		}()
	}
	begin()
	var made net.Conn
	var failed error
	for ended < begun {
		select {
		case r := <-results:
			ended++
			switch {
			case r.err == nil && made == nil:
				made = r.conn
				cancel() // the attempts that are under way
			case r.err == nil:
				_ = r.conn.Close() // too late
			case failed == nil || local(Connect, failed) && !local(Connect, r.err):
				failed = r.err
			}
		case <-timer.C:
		}
		if made == nil && begun < len(list) && ctx.Err() == nil {
			begin()
		}
	}
	if made != nil {
		return made, nil
	}
	return nil, failed
}
