package sinkgrpc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/statsd-admin/statsd-admin/flush/sinkhttp"
	"github.com/statsd-admin/statsd-admin/flush/sinkqueue"
	"github.com/statsd-admin/statsd-admin/internal/closedport"
	"github.com/statsd-admin/statsd-admin/internal/protobuf"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const method = "/test.Service/Send"

// serve starts a server whose only method is handle, and returns its address.
func serve(t *testing.T, handle func(header metadata.MD, message []byte) ([]byte, error)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer(grpc.ForceServerCodecV2(codec{}), grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		header, _ := metadata.FromIncomingContext(stream.Context())
		var message []byte
		if err := stream.RecvMsg(&message); err != nil {
			return err
		}
		answer, err := handle(header, message)
		if err != nil {
			return err
		}
		return stream.SendMsg(answer)
	}))
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(l) }()
	t.Cleanup(func() { s.Stop(); <-done })
	return "http://" + l.Addr().String()
}

func client(t *testing.T, cfg sinkhttp.Config) *Client {
	t.Helper()
	cfg.Timeout = time.Minute
	c, err := New(Config{cfg})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestCall(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var header metadata.MD
	address := serve(t, func(h metadata.MD, message []byte) ([]byte, error) {
		header = h
		return append([]byte("re: "), message...), nil
	})
	c := client(t, sinkhttp.Config{URL: address, Headers: map[string]string{"x-scope": "a"}, BearerTokenFile: token, UserAgent: "edge"})
	for range 2 {
		answer, err := c.Call(t.Context(), method, []byte("hello"))
		if err != nil || string(answer) != "re: hello" {
			t.Errorf("%q, %v", answer, err)
		}
	}
	if header.Get("x-scope")[0] != "a" || header.Get("authorization")[0] != "Bearer secret" || !strings.HasPrefix(header.Get("user-agent")[0], "edge ") {
		t.Errorf("%v", header)
	}
	if got, want := c.Target(), address; got != want {
		t.Errorf("target %q, want %q", got, want)
	}
}

// TestMeaningOfErrors checks what is said of a message after each status.
func TestMeaningOfErrors(t *testing.T) {
	retry := protobuf.AppendBytes(nil, 1, protobuf.AppendUint(protobuf.AppendUint(nil, 1, 7), 2, 5e8))
	asks := func(code codes.Code) error {
		p := status.New(code, "busy").Proto()
		p.Details = []*anypb.Any{{TypeUrl: "type.googleapis.com/google.rpc.RetryInfo", Value: retry}}
		return status.FromProto(p).Err()
	}
	for _, tt := range []struct {
		err                error
		ambiguous, refused bool
		wait               time.Duration
	}{
		{status.Error(codes.Unavailable, ""), true, false, 0},
		{asks(codes.Unavailable), false, false, 7500 * time.Millisecond},
		{asks(codes.ResourceExhausted), false, false, 7500 * time.Millisecond},
		{status.Error(codes.ResourceExhausted, ""), false, true, 0},
		{status.Error(codes.Aborted, ""), true, false, 0},
		{status.Error(codes.OutOfRange, ""), true, false, 0},
		{status.Error(codes.DataLoss, ""), true, false, 0},
		{status.Error(codes.Canceled, ""), true, false, 0},
		{status.Error(codes.DeadlineExceeded, ""), true, false, 0},
		{status.Error(codes.InvalidArgument, ""), false, true, 0},
		{status.Error(codes.Unimplemented, ""), false, true, 0},
		{status.Error(codes.PermissionDenied, ""), false, true, 0},
		{asks(codes.Internal), false, true, 0},
	} {
		c := client(t, sinkhttp.Config{URL: serve(t, func(metadata.MD, []byte) ([]byte, error) { return nil, tt.err })})
		_, err := c.Call(t.Context(), method, nil)
		var wait *sinkqueue.Wait
		if errors.As(err, &wait) != (tt.wait > 0) || wait != nil && wait.After != tt.wait {
			t.Errorf("%v: pause %+v, want %v", tt.err, wait, tt.wait)
		}
		if errors.Is(err, sinkqueue.ErrAmbiguous) != tt.ambiguous || errors.Is(err, sinkqueue.ErrRefused) != tt.refused || status.Code(err) != status.Code(tt.err) {
			t.Errorf("%v: %v", tt.err, err)
		}
	}
}

// TestUnsentMessages checks that errors before the message leaves are neither ambiguous
// nor refusals.
func TestUnsentMessages(t *testing.T) {
	c := client(t, sinkhttp.Config{URL: "http://" + closedport.TCP(t).String()})
	if _, err := c.Call(t.Context(), method, nil); err == nil || errors.Is(err, sinkqueue.ErrAmbiguous) || errors.Is(err, sinkqueue.ErrRefused) {
		t.Errorf("a refused connection: %v", err)
	}
	address := serve(t, func(metadata.MD, []byte) ([]byte, error) { return nil, nil })
	c = client(t, sinkhttp.Config{URL: address, BearerTokenFile: filepath.Join(t.TempDir(), "missing")})
	if _, err := c.Call(t.Context(), method, nil); !errors.Is(err, os.ErrNotExist) || errors.Is(err, sinkqueue.ErrRefused) {
		t.Errorf("a missing token: %v", err)
	}
}

// TestBrokenCallsAreAmbiguous ends the call while the receiver has the message.
func TestBrokenCallsAreAmbiguous(t *testing.T) {
	got, end := make(chan struct{}), make(chan struct{})
	address := serve(t, func(metadata.MD, []byte) ([]byte, error) { close(got); <-end; return nil, nil })
	defer close(end)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-got; cancel() }()
	if _, err := client(t, sinkhttp.Config{URL: address}).Call(ctx, method, []byte("x")); !errors.Is(err, sinkqueue.ErrAmbiguous) {
		t.Error(err)
	}
}

func TestWrongAddresses(t *testing.T) {
	for _, address := range []string{"", "a:1", "http://a", "http://a:1/path", "ftp://a:1"} {
		if _, err := New(Config{sinkhttp.Config{URL: address}}); err == nil {
			t.Errorf("%q is accepted", address)
		}
	}
}

func ExampleClient_Call() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	server := grpc.NewServer() // knows no methods
	go func() { _ = server.Serve(l) }()
	defer server.Stop()
	c, err := New(Config{sinkhttp.Config{URL: "http://" + l.Addr().String()}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	_, err = c.Call(context.Background(), "/example.Service/Send", []byte("message"))
	fmt.Println(errors.Is(err, sinkqueue.ErrRefused), status.Code(err))
	// Output: true Unimplemented
}
