package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/closedport"
	"github.com/statsd-admin/statsd-admin/internal/waittest"
)

// TestSendToAServer sends lines to listeners of all kinds of a real server.
func TestSendToAServer(t *testing.T) {
	dir := shortDir(t)
	cert, key := selfSigned(t, dir)
	d := running(t, `admin: {`+onLoopback+`}
statsd:
  listeners:
  - {name: udp, address: "udp://127.0.0.1:0"}
  - {name: tcp, address: "tcp://127.0.0.1:0"}
  - {name: tls, address: "tls://127.0.0.1:0", tls: {certificate_chain: `+cert+`, private_key: `+key+`}}
  - {name: mutual, address: "tls://127.0.0.1:0", tls: {certificate_chain: `+cert+`, private_key: `+key+`, client_ca: `+cert+`}}
  - {name: unixgram, address: "unixgram://`+dir+`/g"}
  - {name: unixstream, address: "unixstream://`+dir+`/s"}
  - {name: unixlines, address: "unixlines://`+dir+`/l"}`)
	admin := "http://" + d.Admin().Addr().String()
	for _, l := range d.StatsD().Listeners() {
		address := l.Address
		if path, ok := map[string]string{"unixgram": "g", "unixstream": "s", "unixlines": "l"}[l.Name]; ok {
			address = l.Name + ":" + dir + "/" + path
		}
		args := []string{"send", "--address", address}
		switch l.Name {
		case "tls":
			args = append(args, "--ca", cert)
		case "mutual":
			args = append(args, "--ca", cert, "--cert", cert, "--key", key)
		}
		const lines = 1000
		line := l.Name + ".piped:1|c\n"
		for _, run := range []struct {
			stdin string
			args  []string
		}{{"", []string{l.Name + ".args:2|c", l.Name + ".args:3|c"}}, {strings.Repeat(line+"\n", lines) + strings.TrimSpace(line), nil}} {
			status, stdout, stderr := invoke(strings.NewReader(run.stdin), append(args, run.args...)...)
			if status != 0 || stdout != "" || stderr != "" {
				t.Errorf("%s: status %d, %q, %q", address, status, stdout, stderr)
			}
		}
		want := fmt.Sprintf("%s.args: 5\n%[1]s.piped: %d\n", l.Name, lines+1)
		waittest.Equal(t, address, want, func() string {
			_, got, _ := invoke(nil, "get", "--address", admin, "/stats?filter=^"+l.Name+`\.(args|piped)$`)
			return got
		})
	}
}

// TestSendFillsPackets checks how lines are distributed over packets, and that
// lines that have arrived do not wait for others.
func TestSendFillsPackets(t *testing.T) {
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	expect := func(packets ...string) {
		t.Helper()
		for _, want := range packets {
			b := make([]byte, 65536)
			if err := c.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
				t.Fatal(err)
			}
			n, _, err := c.ReadFrom(b)
			if err != nil || string(b[:n]) != want {
				t.Fatalf("packet %q, %v; want %q", b[:n], err, want)
			}
		}
	}
	args := []string{"send", "--address", "udp://" + c.LocalAddr().String(), "--packet-bytes", "12"}
	if status, _, stderr := invoke(nil, append(args, "a:1|c", "b:1|c", "", "c:1|c\nd:1|c", "long.line:1|c", "e:1|c")...); status != 0 {
		t.Fatal(stderr)
	}
	expect("a:1|c\nb:1|c", "c:1|c\nd:1|c", "long.line:1|c", "e:1|c")

	r, w := io.Pipe()
	done := make(chan string)
	go func() {
		_, _, stderr := invoke(r, args...)
		done <- stderr
	}()
	for _, line := range []string{"a:1|c", "b:1|c"} {
		if _, err := io.WriteString(w, line+"\n"); err != nil {
			t.Fatal(err)
		}
		expect(line)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if stderr := <-done; stderr != "" {
		t.Error(stderr)
	}
}

// TestSendEndsAtALineThatFails writes to a connection that is closed, with a batch that is
// full before the input ends.
func TestSendEndsAtALineThatFails(t *testing.T) {
	here, there := net.Pipe()
	there.Close()
	s := &sender{conn: here, limit: 8}
	lines := strings.NewReader("a:1|c\nb:1|c\n" + strings.Repeat("c:1|c\n", 100_000))
	if err := s.sendAll(lines, func(int) { t.Error("a line is too long") }); !errors.Is(err, io.ErrClosedPipe) || lines.Len() == 0 {
		t.Errorf("%v, with %d bytes unread", err, lines.Len())
	}
	for _, line := range []string{"a:1|c", strings.Repeat("x", maxSentLine)} {
		s.batch = nil
		if err := s.sendAll(strings.NewReader(line+"\n"), func(int) { t.Error("a line is too long") }); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("the last batch, %.9s: %v", line, err)
		}
	}
}

// TestSendEndsIfNothingIsRead has a receiver that takes nothing.
func TestSendEndsIfNothingIsRead(t *testing.T) {
	here, there := net.Pipe()
	defer there.Close()
	s := &sender{conn: here, limit: 8, timeout: time.Millisecond}
	if err := s.sendAll(strings.NewReader("a:1|c\n"), nil); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
}

func TestSendReportsFailures(t *testing.T) {
	open, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	to := "udp://" + open.LocalAddr().String()
	for _, tt := range []struct {
		stdin   io.Reader
		address string
		want    string
	}{
		{strings.NewReader("a:1|c"), "udp://" + closedport.UDP(t).String(), "connection refused\n"},
		{strings.NewReader("a:1|c"), "tcp://" + closedport.TCP(t).String(), "connection refused\n"},
		{strings.NewReader("a:1|c"), "unixgram:/nowhere/s", "no such file or directory\n"},
		{strings.NewReader("a:1|c\n" + strings.Repeat("x", 1<<20) + "\n"), to, "error: line 2 is longer than 65507 bytes\n"},
		{strings.NewReader(strings.Repeat(strings.Repeat("x", maxSentLine+1)+"\n", 2)), to, "error: line 2 is longer than 65507 bytes\n"},
		{iotest.ErrReader(errors.New("unplugged")), to, "error: unplugged\n"},
	} {
		status, _, stderr := invoke(tt.stdin, "send", "--address", tt.address)
		if status != 1 || !strings.HasSuffix(stderr, tt.want) {
			t.Errorf("%s: status %d, %q, want %q", tt.address, status, stderr, tt.want)
		}
	}
}
