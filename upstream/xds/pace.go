package xds

import (
	"cmp"
	"time"

	"github.com/statsd-admin/statsd-admin/upstream/config"
)

// Delays after a stream failed.
const (
	firstDelay = 500 * time.Millisecond
	lastDelay  = 30 * time.Second
	// lastRefusal is the longest delay between consecutive refusals. Many servers
	// answer a refusal at once with the same response.
	lastRefusal = 5 * time.Second
)

// backoff returns random delays from a range that doubles with each attempt.
type backoff struct {
	rand        func() uint64
	first, last time.Duration // last limits the range
	most        time.Duration // range of the next delay; 0 means first
}

func (b *backoff) next() time.Duration {
	b.most = cmp.Or(b.most, b.first)
	d := time.Duration(b.rand()%uint64(b.most)) + 1
	b.most = min(2*b.most, b.last)
	return d
}

func (b *backoff) reset() { b.most = 0 }

// limiter is a token bucket for requests. The zero value does not limit.
type limiter struct {
	size, perSecond float64
	tokens          float64
	last            time.Time
}

func newLimiter(r *config.RateLimit) limiter {
	if r == nil {
		return limiter{}
	}
	size := max(float64(r.MaxTokens), 1)
	return limiter{size: size, perSecond: max(r.FillRate, 0.05), tokens: size, last: time.Now()}
}

// take takes a token and returns 0, or returns the time to wait for one.
func (l *limiter) take() time.Duration {
	if l.size == 0 {
		return 0
	}
	now := time.Now()
	l.tokens = min(l.size, l.tokens+now.Sub(l.last).Seconds()*l.perSecond)
	l.last = now
	if l.tokens < 1 {
		return time.Duration((1-l.tokens)/l.perSecond*float64(time.Second)) + time.Millisecond
	}
	l.tokens--
	return 0
}
