package xds

import (
	"time"

	"github.com/statsd-admin/statsd-admin/upstream/config"
)

// Delays after a stream failed.
const (
	firstDelay = 500 * time.Millisecond
	lastDelay  = 30 * time.Second
	// lastRefusal is the longest time to the next refusal of what was refused
	// before. Many servers answer a refusal with the same again, at once.
	lastRefusal = 5 * time.Second
)

// backoff tells how long to wait before the next try: a random part of a time
// that doubles from try to try.
type backoff struct {
	rand        func() uint64
	first, last time.Duration // last is that beyond which it does not double
	most        time.Duration // of the next delay; 0: first
}

func (b *backoff) next() time.Duration {
	if b.most == 0 {
		b.most = b.first
	}
	d := time.Duration(b.rand()%uint64(b.most)) + 1
	b.most = min(2*b.most, b.last)
	return d
}

func (b *backoff) reset() { b.most = 0 }

// limiter is a bucket of tokens, one per request. The zero value does not limit.
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

// take takes a token and returns 0, or returns how long to wait for one.
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
