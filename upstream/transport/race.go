package transport

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/guard"
	"github.com/statsd-admin/statsd-admin/upstream/config"
)

// attemptDelay is how long an address is tried alone before the next one is tried
// beside it.
const attemptDelay = 300 * time.Millisecond

// order returns addresses in the order in which they are to be tried: as many of
// the first family as c says, then one of the other, and so on (RFC 8305, section 4).
// A nil c prefers the family of the first address, by one.
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

// errPanic stands for an attempt that went wrong in a way that nobody thought of.
var errPanic = errors.New("transport: panic")

func is4(a config.Address) bool { return a.IP.Addr().Unmap().Is4() }

// race connects to the addresses one after the other, each once the one before has
// failed or attemptDelay after it, and returns the first connection that is made
// (RFC 8305, section 5). The others are given up before it returns. If none is made
// the error is that of the attempt that failed first, but for those that say nothing
// of the host. An attempt that panics has failed, and g is told. list must not be empty.
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
	defer timer.Stop()
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
