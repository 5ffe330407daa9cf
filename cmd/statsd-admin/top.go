package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/statsd-admin/statsd-admin/internal/top"
)

// topCommand shows the live stats of a server.
func (p *program) topCommand() *command {
	var c client
	var t top.Config
	fs := c.flags("top", 30*time.Second)
	fs.StringVarP(&t.Filter, "filter", "f", "", "regular `expression` that selects stats")
	fs.StringVarP(&t.Sort, "sort", "s", "rate", "`column` to sort by: "+strings.Join(top.Columns(), ", "))
	fs.DurationVarP(&t.Interval, "interval", "i", time.Second, "`time` between updates: 1s to 30s")
	fs.BoolVar(&t.Once, "once", false, "print one table after the first interval and exit")
	choices(fs, "sort", top.Columns()...)
	fs.Lookup("timeout").Usage = "`time` limit of connecting and of each request but the stream; 0s means none"
	return &command{
		name:    "top",
		summary: "show live stats",
		details: "Shows the stats of a server as they change, with rates, changes since the start or\n" +
			"since z was pressed, and trends; the distribution of a histogram as bars; and the\n" +
			"clusters with the health of their hosts. The key ? lists all keys.\n\n" +
			"If the output is not a terminal, prints a table for each interval, with columns\n" +
			"separated by tabs. NO_COLOR=1 switches colors off. The exit status is 0 if the user\n" +
			"quits or the table is complete, 1 if the server cannot be reached, and 2 for a\n" +
			"wrong command line.\n",
		flags: fs,
		run:   func(ctx context.Context) error { return p.top(ctx, &c, &t) },
	}
}

func (p *program) top(ctx context.Context, c *client, t *top.Config) error {
	switch {
	case !slices.Contains(top.Columns(), t.Sort):
		return usageError{fmt.Errorf("error: unknown column '%s': want one of %s", t.Sort, strings.Join(top.Columns(), ", "))}
	case t.Interval < time.Second || t.Interval > 30*time.Second:
		return usageError{fmt.Errorf("error: interval %v is not between 1s and 30s", t.Interval)}
	}
	if _, _, err := c.transport(); err != nil {
		return err
	}
	t.Server, t.Output, t.Get = c.address, p.stdout, c.body
	in, isFile := p.stdin.(*os.File)
	out, ok := p.stdout.(*os.File)
	if t.Once || !isFile || !ok || !term.IsTerminal(int(in.Fd())) || !term.IsTerminal(int(out.Fd())) || os.Getenv("TERM") == "dumb" {
		return prefixed(top.Print(ctx, *t))
	}
	t.Input = in
	t.Size = func() (columns, lines int) {
		columns, lines, err := term.GetSize(int(out.Fd()))
		if err != nil || columns == 0 {
			return 80, 24
		}
		return columns, lines
	}
	t.Style = top.Style{Color: os.Getenv("NO_COLOR") == "", ASCII: !unicodeLocale(os.Getenv)}
	t.Resized = resizes()
	state, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return fmt.Errorf("error: %w", err)
	}
	defer func() { _ = term.Restore(int(in.Fd()), state) }() // best effort
	// A signal must not leave the terminal as it is now.
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	defer stop()
	return prefixed(top.Run(ctx, *t))
}

// prefixed returns an error as the program prints it.
func prefixed(err error) error {
	if err == nil || strings.HasPrefix(err.Error(), "error: ") {
		return err
	}
	return fmt.Errorf("error: %w", err)
}

// unicodeLocale reports whether the environment asks for UTF-8.
func unicodeLocale(getenv func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if value := getenv(name); value != "" {
			value = strings.ToLower(value)
			return strings.HasSuffix(value, "utf-8") || strings.HasSuffix(value, "utf8")
		}
	}
	return false
}

// body requests a path and returns the body of an answer with status 200.
func (c *client) body(ctx context.Context, path string) (io.ReadCloser, error) {
	own := *c
	own.endless = strings.HasPrefix(path, "/stats/stream")
	resp, err := own.get(ctx, path)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusOK {
		return resp.Body, nil
	}
	err = errors.New(responseError(resp))
	_ = resp.Body.Close()
	if resp.StatusCode < 500 {
		return nil, &top.Refused{Text: err.Error()}
	}
	return nil, err
}
