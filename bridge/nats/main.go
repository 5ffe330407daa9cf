// Command nats carries datagrams of StatsD lines over NATS. With --from it publishes the
// datagrams that arrive at a UDP address, for example from the statsd sink of a server;
// with --to it sends published datagrams to a UDP address, such as a listener of a server.
// Subscribers with the same --group share the datagrams; others each get all of them.
//
//	nats --from 127.0.0.1:9126 --server nats://hub:4222
//	nats --to 127.0.0.1:8125 --server nats://hub:4222
//
// NATS delivers at most once: datagrams are lost while a subscriber is away, as over UDP.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/nats-io/nats.go"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], func(net.Addr) {}); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "nats:", err)
		os.Exit(1)
	}
}

// run carries datagrams until ctx ends. It calls ready with the address of its UDP socket
// once nothing that follows is missed.
func run(ctx context.Context, args []string, ready func(net.Addr)) error {
	flags := flag.NewFlagSet("nats", flag.ContinueOnError)
	server := flags.String("server", nats.DefaultURL, "`URL` of the NATS server")
	subject := flags.String("subject", "statsd", "`subject` of the datagrams")
	from := flags.String("from", "", "UDP `address` from which to publish")
	to := flags.String("to", "", "UDP `address` to which to send")
	group := flags.String("group", "", "queue `group` of subscribers that share the datagrams")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if (*from == "") == (*to == "") || flags.NArg() > 0 {
		return errors.New("want either --from or --to, and no arguments")
	}
	hub, err := nats.Connect(*server, nats.Name("statsd-admin"), nats.MaxReconnects(-1))
	if err != nil {
		if u := (*url.Error)(nil); errors.As(err, &u) {
			err = errors.New("not a URL") // the error has all of it
		}
		return fmt.Errorf("%s: %w", (*server)[strings.LastIndexByte(*server, '@')+1:], err) // without credentials
	}
	defer hub.Close()
	if *to != "" {
		return deliver(ctx, hub, *subject, *group, *to, ready)
	}
	return publish(ctx, hub, *subject, *from, ready)
}

func publish(ctx context.Context, hub *nats.Conn, subject, from string, ready func(net.Addr)) error {
	socket, err := net.ListenPacket("udp", from)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = socket.Close() })()
	ready(socket.LocalAddr())
	datagram := make([]byte, 64<<10)
	for {
		n, _, err := socket.ReadFrom(datagram)
		if ctx.Err() != nil {
			return hub.Flush()
		}
		if err != nil {
			return err
		}
		// A datagram that the server does not take is lost: it is too long, or too many wait
		// for the server to return.
		if err := hub.Publish(subject, datagram[:n]); errors.Is(err, nats.ErrConnectionClosed) {
			return err
		}
	}
}

func deliver(ctx context.Context, hub *nats.Conn, subject, group, to string, ready func(net.Addr)) error {
	socket, err := net.Dial("udp", to)
	if err != nil {
		return err
	}
	defer socket.Close()
	_, err = hub.QueueSubscribe(subject, group, func(m *nats.Msg) {
		_, _ = socket.Write(m.Data) // refused while nothing listens there
	})
	if err != nil {
		return err
	}
	if err := hub.Flush(); err != nil { // the server knows of the subscription
		return err
	}
	ready(socket.LocalAddr())
	<-ctx.Done()
	return nil
}
