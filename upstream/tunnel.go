package upstream

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/statsd-admin/statsd-admin/upstream/host"
	"github.com/statsd-admin/statsd-admin/upstream/status"
)

// tunnelBuffer limits the bytes in transit in each direction of a tunnel.
const tunnelBuffer = 32 << 10

// Tunnel copies between client and the host until both have closed their
// sending side, either fails, no data has moved for the idle time, ctx is done, or
// the host turns unhealthy in a cluster with
// close_connections_on_host_health_failure. Then it closes both. The end of one side is passed on if the other
// connection has a CloseWrite method; otherwise it ends the tunnel. If idle is
// 0, there is no idle limit. The buffers are at most as large as the cluster's
// buffer limit. It returns the number of bytes sent to the host and to the
// client.
func (c *Conn) Tunnel(ctx context.Context, client net.Conn, idle time.Duration) (toHost, toClient uint64) {
	defer c.Close()
	defer client.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c.cluster.tunnels.Store(c, cancel)
	defer c.cluster.tunnels.Delete(c)
	if c.cluster.config.CloseOnHealthFailure && !c.failed && c.host.Health() == status.Unhealthy {
		cancel() // it has failed since it was picked
	}
	defer context.AfterFunc(ctx, func() { _, _ = client.Close(), c.Close() })()
	size := c.cluster.BufferSize(tunnelBuffer)
	var back sync.WaitGroup
	moved := activity{begin: time.Now()}
	back.Go(func() {
		if !c.cluster.env.guard.Run("tunnel", func() { copyUntilIdle(client, c, size, idle, &moved, &toClient) }) {
			_ = client.Close() // which has panicked
		}
	})
	copyUntilIdle(c, client, size, idle, &moved, &toHost)
	back.Wait()
	return toHost, toClient
}

func (c *Cluster) endTunnels(h *host.Host) {
	c.tunnels.Range(func(conn, end any) bool {
		if conn.(*Conn).host == h {
			end.(context.CancelFunc)()
		}
		return true
	})
}

// BufferSize returns the size of a buffer of a connection: the wanted size, or the
// buffer limit of the cluster if that is less.
func (c *Cluster) BufferSize(wanted int) int {
	return max(1, min(wanted, int(min(c.config.BufferLimitBytes, 1<<30))))
}

// activity records when data last moved. The time of day can be set meanwhile.
type activity struct {
	begin time.Time
	last  atomic.Int64 // nanoseconds since begin
}

func (a *activity) note(now time.Time) { a.last.Store(int64(now.Sub(a.begin))) }

// since returns the time since data last moved.
func (a *activity) since(now time.Time) time.Duration {
	return now.Sub(a.begin) - time.Duration(a.last.Load())
}

// copyUntilIdle copies until from ends, and then closes the sending side of to. If
// neither direction moves for the idle time, to does not accept data for as long, or an
// error occurs, it closes both. moved is shared by both directions. The bytes that to
// accepted are added to written.
func copyUntilIdle(to, from net.Conn, size int, idle time.Duration, moved *activity, written *uint64) {
	deadline := func() time.Time {
		if idle <= 0 {
			return time.Time{}
		}
		return time.Now().Add(idle)
	}
	buffer := make([]byte, size)
	for {
		_ = from.SetReadDeadline(deadline()) // a closed one shows it in Read
		n, err := from.Read(buffer)
		if n > 0 {
			moved.note(time.Now())
			_ = to.SetWriteDeadline(deadline()) // a closed one shows it in Write
			w, werr := to.Write(buffer[:n])
			*written += uint64(w)
			if werr != nil {
				_, _ = to.Close(), from.Close() // part of it may have gone
				return
			}
		}
		if err == io.EOF {
			if half, ok := to.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
				return
			}
		}
		if errors.Is(err, os.ErrDeadlineExceeded) && moved.since(time.Now()) < idle {
			continue // the other direction is busy
		}
		if err != nil {
			_, _ = to.Close(), from.Close()
			return
		}
	}
}
