package health

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/host"
)

// maxReceived bounds the received bytes that a TCP check keeps.
const maxReceived = 1 << 20

// tcpProber checks by connecting, or by the bytes it receives.
type tcpProber struct {
	c    *Config
	host *host.Host
	conn net.Conn       // kept for the next check; nil: none
	at   config.Address // where it leads
}

// Close implements Prober.
func (p *tcpProber) Close() {
	if p.conn != nil {
		p.conn.Close()
		p.conn = nil
	}
}

// Probe implements Prober.
func (p *tcpProber) Probe(ctx context.Context) Outcome {
	tc := &p.c.Check.TCP
	if a := p.host.HealthCheckAddress(); a != p.at {
		p.Close()
		p.at = a
	}
	for {
		kept := p.conn != nil
		if !kept {
			conn, err := p.c.Dial(ctx, p.host, p.at)
			if err != nil {
				return p.c.unreachable(err)
			}
			p.conn = conn
		}
		if len(tc.Receive) == 0 {
			p.Close()
			return Outcome{Kind: Passed}
		}
		err := p.exchange(ctx, tc.Send, tc.Receive)
		if err != nil || !p.c.Check.ReuseConnection {
			p.Close()
		}
		switch {
		case err == nil:
			return Outcome{Kind: Passed}
		case !kept || ctx.Err() != nil:
			return Outcome{Kind: Network}
		} // else the host has probably closed the connection since the last check
	}
}

// exchange sends, and reads until the payloads have arrived.
func (p *tcpProber) exchange(ctx context.Context, send []byte, receive [][]byte) error {
	conn := p.conn
	// A past deadline ends reads and writes at once when ctx is done.
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if _, err := conn.Write(send); err != nil {
		return err
	}
	var got []byte
	buf := make([]byte, 4096)
	for {
		n, err := conn.Read(buf)
		got = append(got, buf[:n]...)
		if contains(got, receive) {
			return nil
		}
		if err != nil {
			return err
		}
		if len(got) > maxReceived {
			return errors.New("health: the answer is too long")
		}
	}
}
