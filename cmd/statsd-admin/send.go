package main

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

const (
	maxSentLine = 65507                 // bytes, those of the largest UDP packet over IPv4
	refusalWait = 10 * time.Millisecond // for the answer to the last packet
	streamBatch = 64 << 10              // bytes written at once to a stream
)

// sendOptions are the flags of the send command.
type sendOptions struct {
	address, ca, cert, key string
	packetBytes            uint32Value
	timeout                time.Duration
}

func (o *sendOptions) flags() *pflag.FlagSet {
	fs := newFlagSet("send")
	fs.StringVarP(&o.address, "address", "a", "udp://127.0.0.1:8125", "`address` of the listener: udp://host:port, tcp://host:port, tls://host:port, unixgram:PATH, unixlines:PATH or unixstream:PATH")
	fs.StringVar(&o.ca, "ca", "", "`file` with CA certificates for a tls listener, in PEM form; default: those of the system")
	fs.StringVar(&o.cert, "cert", "", "`file` of the client certificate for a tls listener, in PEM form; needs --key")
	fs.StringVar(&o.key, "key", "", "`file` of its private key, in PEM form")
	o.packetBytes = 1432
	fs.Var(&o.packetBytes, "packet-bytes", "maximum `bytes` of a packet of several lines; a longer line is sent alone")
	fs.DurationVar(&o.timeout, "timeout", 5*time.Second, "`time` limit of connecting and of each write")
	helpFlag(fs)
	return fs
}

// sendCommand sends lines to a listener.
func (p *program) sendCommand() *command {
	var o sendOptions
	fs := o.flags()
	return &command{
		name:      "send",
		arguments: "[line ...]",
		most:      -1,
		summary:   "send StatsD lines to a listener",
		details: "Sends StatsD lines, from the arguments or else from standard input, to a listener.\n" +
			"Empty lines are skipped, and packets are filled with as many lines as fit. Lines\n" +
			"that arrive slowly are sent at once. The exit status is 0 if all lines were sent,\n" +
			"1 if any was not, and 2 for a wrong command line. Servers do not acknowledge lines:\n" +
			"use explain to see how they handle them.\n",
		flags: fs,
		run:   func(ctx context.Context) error { return p.send(ctx, &o, fs.Args()) },
	}
}

func (p *program) send(ctx context.Context, o *sendOptions, lines []string) error {
	s, err := o.connect(ctx)
	if err != nil {
		return err
	}
	input := p.stdin
	if len(lines) > 0 {
		input = strings.NewReader(strings.Join(lines, "\n"))
	}
	if err := errors.Join(s.sendAll(input, func(number int) {
		fmt.Fprintf(p.stderr, "error: line %d is longer than %d bytes\n", number, maxSentLine)
	}), s.close()); err != nil {
		return err
	}
	if s.skipped > 0 {
		return errShown
	}
	return nil
}

// sender sends lines over a connection.
type sender struct {
	conn      net.Conn
	timeout   time.Duration
	datagrams bool
	frames    bool // the length precedes each batch
	limit     int  // bytes of a batch
	batch     []byte
	skipped   int // lines
}

func (o *sendOptions) connect(ctx context.Context) (*sender, error) {
	scheme, rest, _ := strings.Cut(o.address, ":")
	s := &sender{timeout: o.timeout, limit: streamBatch}
	network := scheme
	switch scheme {
	case "udp", "udp4", "udp6", "unixgram":
		s.datagrams, s.limit = true, int(o.packetBytes)
	case "tcp", "tcp4", "tcp6":
	case "tls":
		network = "tcp"
	case "unixstream":
		network, s.frames, s.limit = "unix", true, int(o.packetBytes)
	case "unixlines":
		network = "unix"
	default:
		return nil, usageError{fmt.Errorf("error: address '%s' is not udp://host:port, tcp://host:port, tls://host:port, unixgram:PATH, unixlines:PATH or unixstream:PATH", o.address)}
	}
	place := strings.TrimPrefix(rest, "//")
	if place == "" || !strings.HasPrefix(network, "unix") && !strings.HasPrefix(rest, "//") {
		return nil, usageError{fmt.Errorf("error: address '%s' has no location", o.address)}
	}
	if scheme != "tls" && cmp.Or(o.ca, o.cert, o.key) != "" {
		return nil, usageError{errors.New("error: --ca, --cert and --key need an address that begins with tls://")}
	}
	d := net.Dialer{Timeout: o.timeout}
	var err error
	if scheme == "tls" {
		var cfg *tls.Config
		if cfg, err = clientTLS(o.ca, o.cert, o.key); err != nil {
			return nil, err
		}
		s.conn, err = (&tls.Dialer{NetDialer: &d, Config: cfg}).DialContext(ctx, network, place)
	} else {
		s.conn, err = d.DialContext(ctx, network, place)
	}
	if err != nil {
		return nil, fmt.Errorf("error: %w", err)
	}
	return s, nil
}

// sendAll sends the lines of r. A batch is sent before it waits for more input.
// Lines that are too long are passed to tooLong and skipped.
func (s *sender) sendAll(r io.Reader, tooLong func(number int)) error {
	in := bufio.NewReaderSize(r, streamBatch)
	var line []byte
	for number := 1; ; number++ {
		var err error
		line, err = readLine(in, line[:0], maxSentLine+1)
		if err != nil && !errors.Is(err, io.EOF) {
			return errors.Join(fmt.Errorf("error: %w", err), s.flush())
		}
		switch {
		case len(line) > maxSentLine:
			tooLong(number)
			s.skipped++
		case len(line) > 0:
			if err := s.add(line); err != nil {
				return err
			}
		}
		if in.Buffered() == 0 || err != nil {
			if err := s.flush(); err != nil {
				return err
			}
		}
		if err != nil {
			return nil
		}
	}
}

// add adds a line to the batch, which is sent first if the line does not fit.
func (s *sender) add(line []byte) error {
	if len(s.batch) > 0 && len(s.batch)+len(line)+1 > s.limit {
		if err := s.flush(); err != nil {
			return err
		}
	}
	s.batch = append(append(s.batch, line...), '\n')
	return nil
}

// flush sends the batch. The last line of a packet or frame ends without a line feed.
func (s *sender) flush() error {
	if len(s.batch) == 0 {
		return nil
	}
	b := s.batch
	if s.datagrams || s.frames {
		b = b[:len(b)-1]
	}
	if s.frames {
		b = append(binary.LittleEndian.AppendUint32(nil, uint32(len(b))), b...)
	}
	s.batch = s.batch[:0]
	if s.timeout > 0 {
		if err := s.conn.SetWriteDeadline(time.Now().Add(s.timeout)); err != nil {
			return fmt.Errorf("error: %w", err)
		}
	}
	_, err := s.conn.Write(b)
	return prefixed(err)
}

// close closes the connection. Of a packet that nothing receives, it reports
// the refusal.
func (s *sender) close() error {
	var refused error
	if s.datagrams {
		var b [1]byte
		if err := s.conn.SetReadDeadline(time.Now().Add(refusalWait)); err == nil {
			if _, err = s.conn.Read(b[:]); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
				refused = fmt.Errorf("error: %w", err)
			}
		}
	}
	if err := s.conn.Close(); err != nil {
		return fmt.Errorf("error: %w", err)
	}
	return refused
}
