// Package sinkgrpc sends the packets of sinks over gRPC and classifies errors:
// certainly not delivered, possibly delivered, or permanently refused. Programs
// that do not import it do not link gRPC.
package sinkgrpc

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	"github.com/statsd-admin/statsd-admin/flush/sinkhttp"
	"github.com/statsd-admin/statsd-admin/flush/sinkqueue"
	"github.com/statsd-admin/statsd-admin/internal/protobuf"
)

const (
	defaultTimeout = 10 * time.Second
	maxAnswer      = 1 << 20 // can have a text for each point of the request
	maxHeaders     = 64 << 10
	maxShown       = 512 // of the text of an error
)

// Config are the settings of a [Client].
type Config struct {
	// Config is the receiver, http://host:port or https://host:port, and how to
	// reach it. Connections has no effect: there is one.
	sinkhttp.Config
	// Method is the method to call, such as "/package.Service/Method". It is
	// unary, or takes a client stream, which ends after one message. Required.
	Method string
	// Port is the default port. If it is empty, the URL must have one.
	Port string
	// Gzip compresses requests.
	Gzip bool
	// Dial opens connections and handles TLS itself; the URL, http://name, is
	// then only the authority of calls. Default: connect to the host of the
	// URL.
	Dial func(ctx context.Context) (net.Conn, error)
}

// Client sends packets over one connection, which is opened on demand, and again after
// a call without an answer. Create it with [New]. Its methods are safe for concurrent use.
type Client struct {
	cfg     Config
	url     *url.URL
	connect func() (*grpc.ClientConn, error)

	mu   sync.Mutex // guards the rest
	conn *grpc.ClientConn
}

// New checks cfg and returns a client. It opens no connection.
func New(cfg Config) (*Client, error) {
	if cfg.Dial != nil && cfg.Port == "" {
		cfg.Port = "80" // is not used
	}
	if err := Check(cfg.Config, cfg.Port); err != nil {
		return nil, err
	}
	u, err := url.Parse(cfg.URL)
	if err != nil {
		return nil, err
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = defaultTimeout
	}
	cfg.UserAgent = cmp.Or(cfg.UserAgent, "statsd-admin")
	host := u.Host
	if u.Port() == "" {
		host = net.JoinHostPort(u.Hostname(), cfg.Port)
	}
	secure := insecure.NewCredentials()
	if u.Scheme == "https" {
		c := cmp.Or(cfg.TLS, &tls.Config{MinVersion: tls.VersionTLS12})
		secure = credentials.NewTLS(c)
	}
	call := []grpc.CallOption{grpc.ForceCodecV2(codec{}), grpc.MaxCallRecvMsgSize(maxAnswer)}
	if cfg.Gzip {
		call = append(call, grpc.UseCompressor(gzip.Name))
	}
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(secure), grpc.WithUserAgent(cfg.UserAgent), grpc.WithDefaultCallOptions(call...),
		grpc.WithStatsHandler(watcher{}), grpc.WithNoProxy(), grpc.WithDisableServiceConfig(), grpc.WithDisableRetry(),
		grpc.WithMaxHeaderListSize(maxHeaders),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.DefaultConfig, MinConnectTimeout: cfg.Timeout,
		}),
	}
	uri := "dns:///" + host
	if cfg.Dial != nil {
		uri = "passthrough:///" + u.Host
		options = append(options, grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return cfg.Dial(ctx) }))
	}
	c := &Client{cfg: cfg, url: u, connect: func() (*grpc.ClientConn, error) { return grpc.NewClient(uri, options...) }}
	c.conn, err = c.connect()
	return c, err
}

// Check checks the URL, which must have a port unless there is a default, and the names
// of the headers. The error does not contain secrets.
func Check(cfg sinkhttp.Config, port string) error {
	u, err := sinkhttp.CheckURL(cfg.URL)
	switch {
	case err != nil:
		return err
	case u.Port() == "" && port == "":
		return errors.New("the URL of the receiver has no port")
	}
	if u.Path != "" && u.Path != "/" || u.RawQuery != "" {
		return errors.New("the URL of a receiver over gRPC has no path and no query")
	}
	for name := range cfg.Headers {
		if lower := strings.ToLower(name); strings.HasPrefix(lower, "grpc-") || strings.Trim(lower, "abcdefghijklmnopqrstuvwxyz0123456789-_.") != "" {
			return fmt.Errorf("header %q is not allowed in gRPC", name)
		}
	}
	return nil
}

// Target returns the URL.
func (c *Client) Target() string { return c.url.Scheme + "://" + c.url.Host }

// Close closes the connection.
func (c *Client) Close() { _ = c.current().Close() }

func (c *Client) current() *grpc.ClientConn {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.conn
}

// renew replaces conn, unless another call has: its other end may be gone without a
// sign, and after a failure to connect it would refuse calls for a while.
func (c *Client) renew(conn *grpc.ClientConn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn != conn || conn.GetState() == connectivity.Shutdown {
		return
	}
	if fresh, err := c.connect(); err == nil {
		c.conn = fresh
		_ = conn.Close()
	}
}

// Export sends an encoded message and returns the encoded response. An error
// wraps [sinkqueue.ErrAmbiguous] if the receiver may have received the request,
// and [sinkqueue.ErrRefused] if the status rules out another attempt.
func (c *Client) Export(ctx context.Context, request []byte) ([]byte, error) {
	fields, err := c.cfg.Fields()
	if err != nil {
		return nil, err
	}
	a := &attempt{}
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, attemptKey{}, a), c.cfg.Timeout)
	defer cancel()
	var response []byte
	var trailer metadata.MD
	conn := c.current()
	if err := conn.Invoke(metadata.NewOutgoingContext(ctx, metadata.New(fields)), c.cfg.Method, request, &response, grpc.Trailer(&trailer)); err != nil {
		if !a.answered.Load() {
			c.renew(conn)
		}
		return nil, a.failure(err, trailer)
	}
	return response, nil
}

// attempt is how far a call has come.
type attempt struct {
	sent     atomic.Bool // the request left completely
	answered atomic.Bool // the status is the receiver's
}

type attemptKey struct{}

// watcher notes events of calls in their attempts.
type watcher struct{}

func (watcher) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (watcher) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (watcher) HandleConn(context.Context, stats.ConnStats)                       {}

func (watcher) HandleRPC(ctx context.Context, event stats.RPCStats) {
	a, ok := ctx.Value(attemptKey{}).(*attempt)
	if !ok {
		return
	}
	switch event.(type) {
	case *stats.Begin:
		a.sent.Store(false)
		a.answered.Store(false)
	case *stats.OutPayload:
		a.sent.Store(true)
	case *stats.InTrailer:
		a.answered.Store(true)
	}
}

// failure returns the error of the queue for an error of a call. A receiver that
// answers UNAVAILABLE or RESOURCE_EXHAUSTED has not taken the request.
func (a *attempt) failure(err error, trailer metadata.MD) error {
	st := status.Convert(err)
	text := st.Message()
	err = fmt.Errorf("%s: %s", st.Code(), strings.ToValidUTF8(text[:min(len(text), maxShown)], "\ufffd"))
	after, asked := pushback(trailer)
	if !asked {
		after, asked = retryInfo(st)
	}
	retry, taken := false, true
	switch st.Code() {
	case codes.Unavailable:
		retry, taken = true, !a.answered.Load()
	case codes.ResourceExhausted:
		retry, taken = asked, !a.answered.Load()
	case codes.Canceled, codes.DeadlineExceeded, codes.Aborted, codes.OutOfRange, codes.DataLoss:
		retry = true
	}
	if !retry || after < 0 {
		return fmt.Errorf("%w: %w", err, sinkqueue.ErrRefused)
	}
	if taken && a.sent.Load() {
		err = fmt.Errorf("%w: %w", err, sinkqueue.ErrAmbiguous)
	}
	if after > 0 {
		return &sinkqueue.Wait{After: after, Err: err}
	}
	return err
}

// pushback returns the delay before another attempt that a trailer asks for, negative
// if there must be none, and whether it asks at all.
func pushback(trailer metadata.MD) (after time.Duration, asked bool) {
	all := trailer.Get("grpc-retry-pushback-ms")
	if len(all) == 0 {
		return 0, false
	}
	ms, err := strconv.ParseInt(all[0], 10, 32)
	if err != nil || ms < 0 {
		return -1, true
	}
	return time.Duration(ms) * time.Millisecond, true
}

// retryInfo returns the delay of the google.rpc.RetryInfo in a status.
func retryInfo(st *status.Status) (after time.Duration, asked bool) {
	for _, detail := range st.Proto().GetDetails() {
		if !strings.HasSuffix(detail.GetTypeUrl(), "/google.rpc.RetryInfo") {
			continue
		}
		protobuf.Fields(detail.GetValue(), func(f protobuf.Field) {
			if f.Number != 1 {
				return
			}
			protobuf.Fields(f.Bytes, func(f protobuf.Field) {
				switch f.Number {
				case 1:
					after += time.Duration(min(f.Value, 1<<31)) * time.Second
				case 2:
					after += time.Duration(min(f.Value, 1e9))
				}
			})
		})
		return after, true
	}
	return 0, false
}

// codec passes encoded messages through.
type codec struct{}

// Name returns the content subtype of protobuf.
func (codec) Name() string { return "proto" }

// Marshal returns the bytes of a request.
func (codec) Marshal(v any) (mem.BufferSlice, error) {
	b, ok := v.([]byte)
	if !ok {
		return nil, fmt.Errorf("sinkgrpc: %T is not an encoded message", v)
	}
	return mem.BufferSlice{mem.SliceBuffer(b)}, nil
}

// Unmarshal copies the bytes of a response.
func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	b, ok := v.(*[]byte)
	if !ok {
		return fmt.Errorf("sinkgrpc: %T takes no encoded message", v)
	}
	*b = data.Materialize()
	return nil
}
