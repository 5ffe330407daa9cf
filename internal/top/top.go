// Package top is the screen of statsd-admin top: the live stats of a server in a
// terminal, or as tables in a pipe.
//
// Names and values are untrusted. They are escaped before they are written, so that
// they cannot control the terminal.
package top

import (
	"bufio"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/guard"
	"github.com/statsd-admin/statsd-admin/internal/oneline"
)

// Config configures [Run] and [Print].
type Config struct {
	// Get requests a path of the server. The context also ends the reading of the
	// body. An error that a retry cannot change is a [Refused].
	Get    func(ctx context.Context, path string) (io.ReadCloser, error)
	Server string // its address, shown on the screen
	Output io.Writer

	Filter   string        // a regular expression; "" selects everything
	Sort     string        // one of [Columns]; "" is rate
	Interval time.Duration // between two updates, at least a second
	Once     bool          // [Print] ends after one table

	// The rest is only for [Run].
	Input   io.Reader
	Size    func() (columns, lines int)
	Resized <-chan os.Signal // may be nil
	Style   Style

	After  func(time.Duration) <-chan time.Time // nil is [time.After]
	Logger *slog.Logger                         // logs panics; may be nil
}

// Refused is the error of a request that the server understood and did not accept.
type Refused struct{ Text string }

func (e *Refused) Error() string { return e.Text }

// Columns returns the columns that stats can be sorted by.
func Columns() []string { return slices.Clone(columns[:]) }

// delays between attempts to reach the server.
const (
	firstDelay = time.Second
	lastDelay  = 10 * time.Second
)

// news is a report of the goroutine that reads a stream.
type news struct {
	event *event
	err   error // why the stream ended
}

// answer is an answer to a request for a view.
type answer struct {
	path string
	body []byte
	err  error
}

// loop has the channels of a screen.
type loop struct {
	Config
	guard   guard.Guard
	news    chan news // of the current stream
	keys    chan string
	answers chan answer

	stop   context.CancelFunc // ends the current stream
	delay  time.Duration      // before the next attempt
	retry  <-chan time.Time
	asking bool
}

func newLoop(c Config) *loop {
	if c.After == nil {
		c.After = time.After
	}
	return &loop{Config: c, guard: guard.New(c.Logger), keys: make(chan string), answers: make(chan answer), stop: func() {}, delay: firstDelay}
}

// open starts to read a stream, in place of the current one.
func (l *loop) open(ctx context.Context, filter string) {
	l.stop()
	var own context.Context
	own, l.stop = context.WithCancel(ctx)
	reports := make(chan news)
	l.news = reports
	path := fmt.Sprintf("/stats/stream?interval_ms=%d", max(l.Interval, time.Second).Milliseconds())
	if filter != "" {
		path += "&filter=" + escapeQuery(filter)
	}
	go func() { l.guard.Run("stream of stats", func() { l.follow(own, reports, path) }) }()
}

// errPanic is the error of a goroutine that panicked.
var errPanic = errors.New("stopped by a panic")

// follow reports the events of a stream, and its end.
func (l *loop) follow(ctx context.Context, reports chan<- news, path string) {
	err := errPanic
	defer func() {
		select {
		case reports <- news{err: err}:
		case <-ctx.Done():
		}
	}()
	err = l.read(ctx, reports, path)
}

// read reports the events of a stream until it ends.
func (l *loop) read(ctx context.Context, reports chan<- news, path string) error {
	body, err := l.Get(ctx, path)
	if err != nil {
		return err
	}
	defer body.Close()
	r := newReader(body)
	for {
		e, err := r.next()
		if err != nil {
			return err
		}
		select {
		case reports <- news{event: e}:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Run shows the stats until the user quits, the context ends, or the first request
// fails. The terminal has to be in raw mode.
func Run(ctx context.Context, c Config) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l := newLoop(c)
	s := newScreen(c.Style, c.Server, c.Filter, cmp.Or(c.Sort, "rate"))
	l.open(ctx, c.Filter)
	go func() { l.guard.Run("keys of a terminal", func() { l.readKeys(ctx) }) }()
	if err := l.begin(ctx, s); err != nil || s.quit {
		return err
	}
	out := bufio.NewWriter(c.Output)
	// The other screen, without a cursor.
	fmt.Fprint(out, "\x1b[?1049h\x1b[?25l")
	defer func() {
		fmt.Fprint(out, "\x1b[0m\x1b[?25h\x1b[?1049l")
		_ = out.Flush() // best effort
	}()
	tick := l.After(c.Interval)
	for !s.quit {
		if err := l.draw(s, out); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case n := <-l.news:
			l.take(s, n)
		case k, ok := <-l.keys:
			if !ok {
				return nil
			}
			_, lines := c.Size()
			s.key(k, max(1, lines-frame))
		case <-c.Resized:
		case a := <-l.answers:
			l.asking = false
			s.answer(a)
		case <-l.retry:
			l.retry = nil
			l.open(ctx, s.streamFilter())
		case <-tick:
			tick = l.After(c.Interval)
			s.ask = s.path() != "" && !s.paused
			s.pass()
		}
		if s.stream {
			s.stream, l.retry, l.delay = false, nil, firstDelay
			l.open(ctx, s.streamFilter())
		}
		if path := s.path(); s.ask && path != "" && !l.asking {
			s.ask, l.asking = false, true
			go func() { l.guard.Run("request of a view", func() { l.fetch(ctx, path) }) }()
		}
	}
	return nil
}

// begin waits for the first event, for the context, or for a key to quit: a terminal in
// raw mode sends no signals.
func (l *loop) begin(ctx context.Context, s *screen) error {
	keys := l.keys
	for !s.quit {
		select {
		case <-ctx.Done():
			s.quit = true
		case k, ok := <-keys:
			if !ok {
				keys = nil // Run sees it after the first event
			}
			s.quit = k == keyQuit || k == "q"
		case n := <-l.news:
			if n.err != nil && ctx.Err() == nil {
				return n.err
			}
			if n.event != nil {
				s.apply(n.event)
				return nil
			}
		}
	}
	return nil
}

// take applies what the stream reports.
func (l *loop) take(s *screen, n news) {
	if n.event != nil {
		l.delay = firstDelay
		s.apply(n.event)
		return
	}
	s.message = oneline.Escape(n.err.Error())
	s.model.cool()
	s.stale = !s.paused
	if refused := new(Refused); !errors.As(n.err, &refused) {
		l.retry = l.After(l.delay)
		l.delay = min(2*l.delay, lastDelay)
	}
}

func (l *loop) readKeys(ctx context.Context) {
	defer close(l.keys)
	var b [256]byte
	for {
		n, err := l.Input.Read(b[:])
		for _, k := range decodeKeys(string(b[:n])) {
			select {
			case l.keys <- k:
			case <-ctx.Done():
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// maxAnswer is the number of bytes of an answer that are read.
const maxAnswer = 64 << 20

// fetch requests the data of a view.
func (l *loop) fetch(ctx context.Context, path string) {
	a := answer{path: path, err: errPanic}
	defer func() {
		select {
		case l.answers <- a:
		case <-ctx.Done():
		}
	}()
	body, err := l.Get(ctx, path)
	if err == nil {
		a.body, err = io.ReadAll(io.LimitReader(body, maxAnswer))
		err = errors.Join(err, body.Close())
	}
	a.err = err
}

// answer applies a response for the current view.
func (s *screen) answer(a answer) {
	if a.path != s.path() {
		s.ask = s.path() != ""
		return
	}
	err := a.err
	switch {
	case err != nil:
	case s.view == viewClusters:
		var b *board
		if b, err = readBoard(a.body, s.model.millis, s.board); err == nil {
			s.board = b
		}
	case s.view == viewHistogram:
		var d *distribution
		if d, err = readDistribution(a.body); err == nil {
			s.dist = d
		}
	}
	if err != nil {
		s.message = oneline.Escape(err.Error())
	}
}

func (l *loop) draw(s *screen, out *bufio.Writer) error {
	columns, lines := l.Size()
	if s.copied != "" { // OSC 52 of xterm, which terminals pass on over ssh
		fmt.Fprint(out, "\x1b]52;c;", base64.StdEncoding.EncodeToString([]byte(s.copied)), "\a")
		s.copied = ""
	}
	fmt.Fprint(out, "\x1b[H")
	for i, line := range s.draw(columns, lines) {
		if i > 0 {
			fmt.Fprint(out, "\r\n")
		}
		fmt.Fprint(out, line, "\x1b[K")
	}
	fmt.Fprint(out, "\x1b[J")
	return out.Flush()
}

// Print writes a table of the stats after each interval, or one after the first. The
// columns are separated by tabs.
func Print(ctx context.Context, c Config) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l := newLoop(c)
	s := newScreen(Style{}, "", c.Filter, cmp.Or(c.Sort, "rate"))
	l.open(ctx, c.Filter)
	var tick <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case n := <-l.news:
			if n.err != nil {
				return n.err
			}
			if n.event.kind == "error" {
				return errors.New(oneline.Escape(n.event.Reason))
			}
			if s.apply(n.event) && tick == nil {
				tick = l.After(max(c.Interval, time.Second) + slack)
			}
		case <-tick:
			tick = l.After(c.Interval)
			s.pass()
			if err := s.table(c.Output); err != nil || c.Once {
				return err
			}
		}
	}
}

// slack is the time that the first event with changes may take after an interval.
const slack = 500 * time.Millisecond

// table writes the stats as a table.
func (s *screen) table(w io.Writer) error {
	s.refresh()
	out := bufio.NewWriter(w)
	fmt.Fprint(out, "name\ttype\tvalue\tper_sec\tchange\tp50\tp90\tp99\n")
	for _, r := range s.list {
		fmt.Fprintf(out, "%s\t%s\t%s\t", oneline.Escape(r.name), oneline.Escape(r.kind), oneline.Escape(r.text))
		if r.kind == "text" {
			fmt.Fprint(out, "\t\t\t\t\n")
			continue
		}
		fmt.Fprintf(out, "%v\t%v\t", r.rate, r.change())
		if r.recorded {
			fmt.Fprintf(out, "%v\t%v\t%v\n", r.quantiles[0], r.quantiles[1], r.quantiles[2])
		} else {
			fmt.Fprint(out, "\t\t\n")
		}
	}
	return out.Flush()
}
