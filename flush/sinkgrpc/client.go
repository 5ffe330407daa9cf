// Package sinkgrpc sends the packets of sinks over gRPC and says what an error means for
// a packet: surely not delivered, perhaps delivered, or refused for good.
//
// It is apart from package sinkhttp so that programs without sinks over gRPC do not
// contain the gRPC library.
package sinkgrpc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/statsd-admin/statsd-admin/flush/sinkhttp"
	"github.com/statsd-admin/statsd-admin/flush/sinkqueue"
	"github.com/statsd-admin/statsd-admin/internal/boundedfile"
	"github.com/statsd-admin/statsd-admin/internal/protobuf"
)

// Config are the settings of a [Client].
type Config struct {
	// Config is the receiver, http://host:port or https://host:port, and how to
	// reach it. Connections has no effect: there is one.
	sinkhttp.Config
}

// maxAnswer is the size of the longest answer.
const maxAnswer = 64 << 10

// Client calls methods of a receiver over one connection, which is opened by the first
// call and again after errors. Its methods are safe for concurrent use.
type Client struct {
	cfg    Config
	target string
	conn   *grpc.ClientConn
}

// New checks cfg and returns a client. It opens no connection.
func New(cfg Config) (*Client, error) {
	if err := Check(cfg.Config); err != nil {
		return nil, err
	}
	u, err := url.Parse(cfg.URL)
	if err != nil {
		return nil, err
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = 10 * time.Second
	}
	if cfg.UserAgent == "" {
		cfg.UserAgent = "statsd-admin"
	}
	creds := insecure.NewCredentials()
	if u.Scheme == "https" {
		creds = credentials.NewTLS(cfg.TLS)
	}
	conn, err := grpc.NewClient("dns:///"+u.Host,
		grpc.WithTransportCredentials(creds), grpc.WithUserAgent(cfg.UserAgent), grpc.WithNoProxy(),
		grpc.WithDisableServiceConfig(), grpc.WithDisableRetry(),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer), grpc.ForceCodecV2(codec{})),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: sinkqueue.MinRetry, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 5 * time.Second},
			MinConnectTimeout: cfg.Timeout,
		}))
	if err != nil {
		return nil, err
	}
	return &Client{cfg, u.Scheme + "://" + u.Host, conn}, nil
}

// Check checks the URL. The error does not contain secrets.
func Check(cfg sinkhttp.Config) error {
	u, err := sinkhttp.CheckURL(cfg.URL)
	if err == nil && (u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Port() == "") {
		err = errors.New("the URL of a receiver over gRPC is not http://host:port or https://host:port")
	}
	return err
}

// Target returns the URL.
func (c *Client) Target() string { return c.target }

// Close closes the connection.
func (c *Client) Close() { _ = c.conn.Close() }

// Call sends an encoded message to a method, such as "/package.Service/Method", and
// returns the encoded answer. The method can be unary or a stream of the client, which
// ends after the message.
//
// An error wraps [sinkqueue.ErrRefused] if another attempt cannot change it. It wraps
// [sinkqueue.ErrAmbiguous] if the receiver may have taken the message.
func (c *Client) Call(ctx context.Context, method string, message []byte) (answer []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	for name, value := range c.cfg.Headers {
		ctx = metadata.AppendToOutgoingContext(ctx, strings.ToLower(name), value)
	}
	if path := c.cfg.BearerTokenFile; path != "" {
		token, err := boundedfile.Read(path, 64<<10)
		if err != nil {
			return nil, err
		}
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+string(bytes.TrimSpace(token)))
	}
	s, err := c.conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true}, method)
	if err != nil {
		if code := status.Code(err); code == codes.Internal || code == codes.Unauthenticated {
			return nil, fmt.Errorf("%w: %w", err, sinkqueue.ErrRefused) // about the call, not the connection
		}
		return nil, err
	}
	if err = s.SendMsg(message); err == nil {
		err = s.CloseSend()
	}
	if err == nil || errors.Is(err, io.EOF) { // the answer says why
		err = s.RecvMsg(&answer)
	}
	if err != nil {
		return nil, meaning(err)
	}
	return answer, nil
}

// meaning adds to the error of a call what it means for the message. The codes that
// another attempt can change are those of OTLP.
func meaning(err error) error {
	st, _ := status.FromError(err)
	after, asked := retryInfo(st)
	switch st.Code() {
	case codes.ResourceExhausted, codes.Unavailable:
		if asked { // so the receiver has not taken it
			return &sinkqueue.Wait{After: after, Err: err}
		}
		if st.Code() == codes.ResourceExhausted {
			break
		}
		return fmt.Errorf("%w: %w", err, sinkqueue.ErrAmbiguous)
	case codes.Canceled, codes.DeadlineExceeded, codes.Aborted, codes.OutOfRange, codes.DataLoss:
		return fmt.Errorf("%w: %w", err, sinkqueue.ErrAmbiguous)
	}
	return fmt.Errorf("%w: %w", err, sinkqueue.ErrRefused)
}

// retryInfo returns the pause that a status asks for in google.rpc.RetryInfo.
func retryInfo(st *status.Status) (after time.Duration, ok bool) {
	for _, d := range st.Proto().GetDetails() {
		if d.GetTypeUrl() != "type.googleapis.com/google.rpc.RetryInfo" {
			continue
		}
		ok = true
		for msg := d.GetValue(); len(msg) > 0; {
			f, rest, err := protobuf.Next(msg)
			if err != nil {
				break
			}
			msg = rest
			if f.Number == 1 {
				after = duration(f.Bytes)
			}
		}
	}
	return after, ok
}

// duration decodes a google.protobuf.Duration, at most a day.
func duration(msg []byte) (d time.Duration) {
	for len(msg) > 0 {
		f, rest, err := protobuf.Next(msg)
		if err != nil {
			break
		}
		msg = rest
		switch f.Number {
		case 1:
			d += time.Duration(min(f.Value, 24*60*60)) * time.Second
		case 2:
			d += time.Duration(min(f.Value, 999_999_999))
		}
	}
	return d
}

// codec passes encoded messages through.
type codec struct{}

// Name returns the content subtype of protobuf.
func (codec) Name() string { return "proto" }

// Marshal returns v, a []byte.
func (codec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}

// Unmarshal copies the bytes to v, a *[]byte.
func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}
