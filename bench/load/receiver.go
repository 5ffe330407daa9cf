package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/statsd"
	"github.com/statsd-admin/statsd-admin/statsd/relay"
	"github.com/statsd-admin/statsd-admin/store"
)

// configuration is what a receiver does.
type configuration struct {
	Address   string
	Targets   []string // of a relay
	Hash      relay.Key
	RelayOnly bool
}

// figures are the measurements that a receiver prints.
type figures struct {
	Address        string
	Lines, Applied uint64
	Drops          uint64 // packets dropped by the kernel
	User, System   float64
	Mallocs        uint64
	RSS            uint64
}

// serve runs the receiver with a configuration in JSON. It prints its figures once it
// listens, and again for each line that it reads.
func serve(text string, in io.Reader, out io.Writer) error {
	var c configuration
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return err
	}
	st := store.New(store.Options{})
	cfg := statsd.Config{
		Store:     st,
		Listeners: []statsd.ListenerConfig{{Address: c.Address}},
		RelayOnly: c.RelayOnly,
		// This measures load, not limits.
		Limits: statsd.Limits{NewPerSecond: -1},
	}
	if len(c.Targets) > 0 {
		r := relay.Route{Hash: c.Hash}
		for _, address := range c.Targets {
			r.Targets = append(r.Targets, relay.Target{Address: address})
		}
		cfg.Relay = []relay.Route{r}
	}
	srv, err := statsd.New(cfg)
	if err != nil {
		return err
	}
	if err := srv.Listen(); err != nil {
		return err
	}
	sched, err := flush.New(flush.Config{Store: st, Interval: time.Second, Before: []func(time.Time){srv.Flush}})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	ends := make(chan error, 2)
	go func() { ends <- srv.Run(ctx) }()
	go func() { ends <- sched.Run(ctx) }()
	answers := json.NewEncoder(out)
	questions := bufio.NewScanner(in)
	for more := true; more && err == nil; more = questions.Scan() {
		err = answers.Encode(measured(srv, c.RelayOnly))
	}
	cancel()
	return errors.Join(err, <-ends, <-ends)
}

// measured returns figures of srv. A relay is done with lines that it has sent.
func measured(srv *statsd.Server, relayOnly bool) figures {
	report := srv.Report()
	l := report.Listeners[0]
	if relayOnly {
		l.Lines = 0
		for _, t := range report.Relay {
			l.Lines += t.Sent
		}
		l.Applied = l.Lines
	}
	f := figures{Address: l.Protocol + "://" + place(l.Address), Lines: l.Lines, Applied: l.Applied, Drops: l.KernelDrops}
	f.User, f.System = processorTime()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	f.Mallocs = m.Mallocs
	f.RSS = resident()
	return f
}

func place(address string) string {
	_, p, _ := strings.Cut(address, "://")
	return p
}

// resident returns the resident memory of this process, or 0 if the system does not
// report it.
func resident() uint64 {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(b))
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseUint(fields[1], 10, 64)
	if err != nil {
		return 0
	}
	return pages * uint64(os.Getpagesize())
}

// receiver is a receiving process.
type receiver struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     *json.Decoder
	address string
}

func startReceiver(self string, c configuration) (*receiver, error) {
	text, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, "-serve", string(text))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	r := &receiver{cmd: cmd, in: in, out: json.NewDecoder(out)}
	var f figures
	if err := r.out.Decode(&f); err != nil {
		return nil, errors.Join(fmt.Errorf("the receiver did not start: %w", err), r.stop())
	}
	r.address = f.Address
	return r, nil
}

func (r *receiver) ask() (f figures, err error) {
	if _, err = io.WriteString(r.in, "figures\n"); err == nil {
		err = r.out.Decode(&f)
	}
	return f, err
}

// settle waits until the receiver has read that many lines, or no more arrive.
func (r *receiver) settle(lines uint64) (figures, error) {
	last, still := uint64(0), 0
	for {
		f, err := r.ask()
		if err != nil || f.Lines >= lines || still == 20 {
			return f, err
		}
		if f.Lines == last {
			still++
		} else {
			last, still = f.Lines, 0
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// stop ends the receiver and waits for it.
func (r *receiver) stop() error {
	r.in.Close()
	return r.cmd.Wait()
}
