package sinkgrpc

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/statsd-admin/statsd-admin/flush/otlp"
	"github.com/statsd-admin/statsd-admin/flush/sinkhttp"
	"github.com/statsd-admin/statsd-admin/flush/sinkqueue"
	"github.com/statsd-admin/statsd-admin/flush/sinktest"
	"github.com/statsd-admin/statsd-admin/internal/closedport"
	"github.com/statsd-admin/statsd-admin/internal/protobuf"
	"github.com/statsd-admin/statsd-admin/store"
)

const method = "/test.Service/Send"

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve starts a server that answers all calls with answer and returns its address.
func serve(t *testing.T, answer func(ctx context.Context, method string, request []byte) ([]byte, error), options ...grpc.ServerOption) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	handler := func(_ any, stream grpc.ServerStream) error {
		var request []byte
		if err := stream.RecvMsg(&request); err != nil {
			return err
		}
		method, _ := grpc.MethodFromServerStream(stream)
		response, err := answer(stream.Context(), method, request)
		if err != nil {
			return err
		}
		return stream.SendMsg(response)
	}
	srv := grpc.NewServer(append(options, grpc.ForceServerCodecV2(codec{}), grpc.UnknownServiceHandler(handler))...)
	var done sync.WaitGroup
	done.Go(func() { _ = srv.Serve(l) })
	t.Cleanup(func() { srv.Stop(); done.Wait() })
	return l.Addr().String()
}

func connect(t *testing.T, cfg Config) *Client {
	t.Helper()
	tr, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tr.Close)
	return tr
}

func to(address string) Config {
	return Config{Config: sinkhttp.Config{URL: "http://" + address, Timeout: time.Minute}, Method: method}
}

// compression keeps the encoding of the last request.
type compression struct {
	watcher
	last atomic.Value
}

func (c *compression) HandleRPC(_ context.Context, event stats.RPCStats) {
	if h, ok := event.(*stats.InHeader); ok {
		c.last.Store(h.Compression)
	}
}

// TestExport sends headers, a token that is replaced and compressed requests.
func TestExport(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	var got []string
	var encoding compression
	address := serve(t, func(ctx context.Context, method string, request []byte) ([]byte, error) {
		md, _ := metadata.FromIncomingContext(ctx)
		_, limited := ctx.Deadline()
		got = append(got, fmt.Sprint(method, md["x-scope-orgid"], md["authorization"], encoding.last.Load(), " ", strings.HasPrefix(strings.Join(md["user-agent"], ""), "statsd-admin "), limited, len(request)))
		return []byte("answer"), nil
	}, grpc.StatsHandler(&encoding))
	cfg := to(address)
	cfg.Headers, cfg.BearerTokenFile, cfg.Gzip = map[string]string{"X-Scope-OrgID": "shop"}, token, true
	tr := connect(t, cfg)
	if _, err := tr.Export(t.Context(), nil); err == nil || errors.Is(err, sinkqueue.ErrAmbiguous) || errors.Is(err, sinkqueue.ErrRefused) {
		t.Errorf("without a token: %v", err)
	}
	for i := range 2 {
		if err := os.WriteFile(token, fmt.Appendf(nil, "t%d\n", i), 0o600); err != nil {
			t.Fatal(err)
		}
		if b, err := tr.Export(t.Context(), make([]byte, 100_000)); err != nil || string(b) != "answer" {
			t.Errorf("%q, %v", b, err)
		}
		want := fmt.Sprintf("%s[shop] [Bearer t%d]gzip true true 100000", method, i)
		if len(got) != i+1 || got[i] != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := tr.Target(); got != "http://"+address {
		t.Errorf("target %s", got)
	}
}

// foreign is a context whose children need a goroutine until they end.
type foreign struct {
	context.Context
	done chan struct{}
}

func (f foreign) Done() <-chan struct{} { return f.done }
func (foreign) Value(any) any           { return nil }

// TestExportLeavesNothing: a call that has ended holds on to neither its caller's context
// nor its time limit.
func TestExportLeavesNothing(t *testing.T) {
	fails := false
	address := serve(t, func(context.Context, string, []byte) ([]byte, error) {
		if fails {
			return nil, status.Error(codes.Unavailable, "")
		}
		return nil, nil
	})
	tr := connect(t, to(address))
	if _, err := tr.Export(t.Context(), nil); err != nil { // connects
		t.Fatal(err)
	}
	before := goleak.IgnoreCurrent()
	for range 2 {
		if _, err := tr.Export(foreign{t.Context(), make(chan struct{})}, nil); (err != nil) != fails {
			t.Error(err)
		}
		fails = true
	}
	goleak.VerifyNone(t, before)
}

// TestAnswers checks what each status means for a request.
func TestAnswers(t *testing.T) {
	info := func(c codes.Code, after time.Duration) error {
		st, err := status.New(c, "busy").WithDetails(&errdetails.DebugInfo{Detail: "busy"}, &errdetails.RetryInfo{RetryDelay: durationpb.New(after)})
		if err != nil {
			t.Fatal(err)
		}
		return st.Err()
	}
	for _, tt := range []struct {
		name     string
		err      error
		pushback string
		class    error // nil: certainly not delivered
		after    time.Duration
	}{
		{"unavailable", status.Error(codes.Unavailable, "x"), "", nil, 0},
		{"unavailable-info", info(codes.Unavailable, 2500*time.Millisecond), "", nil, 2500 * time.Millisecond},
		{"exhausted", status.Error(codes.ResourceExhausted, "x"), "", sinkqueue.ErrRefused, 0},
		{"exhausted-info", info(codes.ResourceExhausted, 3*time.Second), "", nil, 3 * time.Second},
		{"pushback", status.Error(codes.ResourceExhausted, "x"), "1500", nil, 1500 * time.Millisecond},
		{"pushback-at-once", status.Error(codes.ResourceExhausted, "x"), "0", nil, 0},
		{"pushback-never", status.Error(codes.Unavailable, "x"), "-1", sinkqueue.ErrRefused, 0},
		{"canceled", status.Error(codes.Canceled, "x"), "", sinkqueue.ErrAmbiguous, 0},
		{"deadline", status.Error(codes.DeadlineExceeded, "x"), "", sinkqueue.ErrAmbiguous, 0},
		{"aborted", status.Error(codes.Aborted, "x"), "", sinkqueue.ErrAmbiguous, 0},
		{"out-of-range", status.Error(codes.OutOfRange, "x"), "", sinkqueue.ErrAmbiguous, 0},
		{"data-loss", status.Error(codes.DataLoss, "x"), "", sinkqueue.ErrAmbiguous, 0},
		{"invalid", status.Error(codes.InvalidArgument, strings.Repeat("\xff", 600)), "", sinkqueue.ErrRefused, 0},
		{"unauthenticated", status.Error(codes.Unauthenticated, "x"), "", sinkqueue.ErrRefused, 0},
		{"unimplemented", status.Error(codes.Unimplemented, "x"), "", sinkqueue.ErrRefused, 0},
		{"internal", status.Error(codes.Internal, "x"), "", sinkqueue.ErrRefused, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tr := connect(t, to(serve(t, func(ctx context.Context, _ string, _ []byte) ([]byte, error) {
				if tt.pushback != "" {
					if err := grpc.SetTrailer(ctx, metadata.Pairs("grpc-retry-pushback-ms", tt.pushback)); err != nil {
						t.Error(err)
					}
				}
				return nil, tt.err
			})))
			_, err := tr.Export(t.Context(), []byte("x"))
			checkClass(t, err, tt.class)
			var wait *sinkqueue.Wait
			if errors.As(err, &wait) != (tt.after > 0) || wait != nil && wait.After != tt.after {
				t.Errorf("%v: wait %+v, want %v", err, wait, tt.after)
			}
			if len(err.Error()) > 3*maxShown+100 || !strings.Contains(err.Error(), status.Code(tt.err).String()) {
				t.Errorf("error of %d bytes: %v", len(err.Error()), err)
			}
		})
	}
}

// TestLongAnswer: the texts about many rejected points do not make a request a failure.
func TestLongAnswer(t *testing.T) {
	long := strings.Repeat("host h1 is too old\n", 20_000)
	tr := connect(t, to(serve(t, func(context.Context, string, []byte) ([]byte, error) { return []byte(long), nil })))
	if answer, err := tr.Export(t.Context(), []byte("x")); err != nil || string(answer) != long {
		t.Errorf("%d bytes, %v", len(answer), err)
	}
}

func checkClass(t *testing.T, err, class error) {
	t.Helper()
	for _, c := range []error{sinkqueue.ErrAmbiguous, sinkqueue.ErrRefused} {
		if err == nil || errors.Is(err, c) != (c == class) {
			t.Errorf("%v, want class %v", err, class)
		}
	}
}

// TestBrokenCalls: a call that ends after the request left is doubtful, one without a
// receiver is not.
func TestBrokenCalls(t *testing.T) {
	t.Run("nobody", func(t *testing.T) {
		_, err := connect(t, to(closedport.TCP(t).String())).Export(t.Context(), []byte("x"))
		checkClass(t, err, nil)
	})
	t.Run("canceled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		tr := connect(t, to(serve(t, func(ctx context.Context, _ string, _ []byte) ([]byte, error) {
			cancel()
			<-ctx.Done()
			return nil, ctx.Err()
		})))
		_, err := tr.Export(ctx, []byte("x"))
		checkClass(t, err, sinkqueue.ErrAmbiguous)
	})
	t.Run("broken", func(t *testing.T) {
		front, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		got := make(chan struct{})
		back := serve(t, func(ctx context.Context, _ string, _ []byte) ([]byte, error) {
			close(got)
			<-ctx.Done()
			return nil, ctx.Err()
		})
		var done sync.WaitGroup
		done.Go(func() { breakAfter(front, back, got) })
		defer done.Wait()
		defer front.Close()
		_, err = connect(t, to(front.Addr().String())).Export(t.Context(), []byte("x"))
		checkClass(t, err, sinkqueue.ErrAmbiguous)
	})
}

// breakAfter forwards one connection of l to an address until got is closed.
func breakAfter(l net.Listener, address string, got <-chan struct{}) {
	client, err := l.Accept()
	if err != nil {
		return
	}
	server, err := net.Dial("tcp", address)
	if err != nil {
		_ = client.Close()
		return
	}
	var done sync.WaitGroup
	forward := func(dst, src net.Conn) {
		buf := make([]byte, 4096)
		for {
			n, err := src.Read(buf)
			if n > 0 {
				_, _ = dst.Write(buf[:n])
			}
			if err != nil {
				return
			}
		}
	}
	done.Go(func() { forward(server, client) })
	done.Go(func() { forward(client, server) })
	<-got
	_ = client.Close()
	_ = server.Close()
	done.Wait()
}

// TestTLS trusts only the authority in the settings.
func TestTLS(t *testing.T) {
	certs := httptest.NewTLSServer(nil)
	defer certs.Close()
	address := serve(t, func(context.Context, string, []byte) ([]byte, error) { return []byte("answer"), nil },
		grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: certs.TLS.Certificates})))
	cfg := to(address)
	cfg.URL = "https://" + address
	_, err := connect(t, cfg).Export(t.Context(), []byte("x"))
	checkClass(t, err, nil)
	cfg.TLS = &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}
	cfg.TLS.RootCAs.AddCert(certs.Certificate())
	if b, err := connect(t, cfg).Export(t.Context(), []byte("x")); err != nil || string(b) != "answer" {
		t.Errorf("%q, %v", b, err)
	}
}

func TestNewRefuses(t *testing.T) {
	for _, cfg := range []sinkhttp.Config{
		{}, {URL: "http://a:1/v1/metrics"}, {URL: "http://a:1?x=y"}, {URL: "http://u:p@a:1"}, {URL: "grpc://a:1"},
		{URL: "http://a:1", Headers: map[string]string{"grpc-timeout": "1S"}}, {URL: "http://a:1", Headers: map[string]string{"a b": "c"}},
	} {
		if tr, err := New(Config{Config: cfg, Method: method, Port: "4317"}); err == nil {
			t.Errorf("%+v: %v, %v", cfg, tr, err)
		}
	}
	if tr, err := New(Config{Config: sinkhttp.Config{URL: "http://a"}, Method: method}); err == nil {
		t.Errorf("no port: %v", tr)
	}
	if tr, err := New(Config{Config: sinkhttp.Config{URL: "http://a"}, Method: method, Port: "%"}); err == nil {
		t.Errorf("no number as port: %v", tr)
	}
	tr, err := New(Config{Config: sinkhttp.Config{URL: "http://[::1]/"}, Method: method, Port: "4317"})
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	if got := tr.conn.Target(); got != "dns:///[::1]:4317" {
		t.Errorf("target %s", got)
	}
}

func Example() {
	client, err := New(Config{Config: sinkhttp.Config{URL: "http://127.0.0.1:4317"}, Method: otlp.GRPCMethod})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	sink, err := otlp.New(otlp.Config{Options: sinkqueue.Options{Store: store.New(store.Options{})}, Transport: client})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(sink.Delivery().Target) // pass the sink to flush.New
	// Output: http://127.0.0.1:4317
}

func TestDefaults(t *testing.T) {
	for in, want := range map[time.Duration]time.Duration{0: 10 * time.Second, -1: 10 * time.Second, 1: 1} {
		c, err := New(Config{Config: sinkhttp.Config{URL: "http://127.0.0.1:1", Timeout: in}, Method: "/a.B/C"})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if c.cfg.Timeout != want || c.cfg.UserAgent != "statsd-admin" {
			t.Errorf("timeout %v, want %v", c.cfg.Timeout, want)
		}
	}
}

// TestDelaysThatReceiversAskFor: a trailer that is no delay rules out another attempt.
func TestDelaysThatReceiversAskFor(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0": 0, "1": time.Millisecond, "1500": 1500 * time.Millisecond, "2147483647": 2147483647 * time.Millisecond,
		"-1": -1, "": -1, "x": -1, "1.5": -1, "2147483648": -1,
	} {
		if after, asked := pushback(metadata.Pairs("grpc-retry-pushback-ms", text)); after != want || !asked {
			t.Errorf("%q: %v, asked %t; want %v", text, after, asked, want)
		}
	}
	if after, asked := pushback(metadata.Pairs("other", "1")); after != 0 || asked {
		t.Errorf("no trailer: %v, asked %t", after, asked)
	}
	const url = "type.googleapis.com/google.rpc.RetryInfo"
	delay := protobuf.AppendUint(protobuf.AppendUint(nil, 1, 3), 2, 5) // 3 s and 5 ns
	for name, tt := range map[string]struct {
		url   string
		value []byte
		after time.Duration
		asked bool
	}{
		"delay":       {url, protobuf.AppendBytes(nil, 1, delay), 3*time.Second + 5, true},
		"other field": {url, protobuf.AppendBytes(protobuf.AppendBytes(nil, 2, delay), 3, delay), 0, true},
		"empty":       {url, nil, 0, true},
		"other type":  {"type.googleapis.com/google.rpc.DebugInfo", protobuf.AppendBytes(nil, 1, delay), 0, false},
		"bounds":      {url, protobuf.AppendBytes(nil, 1, protobuf.AppendUint(protobuf.AppendUint(nil, 1, 1<<40), 2, 1<<40)), 1<<31*time.Second + time.Second, true},
	} {
		st := status.FromProto(&spb.Status{Code: 8, Details: []*anypb.Any{{TypeUrl: tt.url, Value: tt.value}}})
		if after, asked := retryInfo(st); after != tt.after || asked != tt.asked {
			t.Errorf("%s: %v, asked %t; want %v, %t", name, after, asked, tt.after, tt.asked)
		}
	}
}

// TestCodecTakesBytesOnly: other values are refused, and bytes pass unchanged.
func TestCodecTakesBytesOnly(t *testing.T) {
	if _, err := (codec{}).Marshal("text"); err == nil {
		t.Error("a text is encoded")
	}
	data, err := codec{}.Marshal([]byte("abc"))
	if err != nil || string(data.Materialize()) != "abc" {
		t.Errorf("encoded as %q, %v", data.Materialize(), err)
	}
	var text string
	if err := (codec{}).Unmarshal(data, &text); err == nil {
		t.Error("a response is decoded into a text")
	}
	var got []byte
	if err := (codec{}).Unmarshal(data, &got); err != nil || string(got) != "abc" {
		t.Errorf("decoded %q, %v", got, err)
	}
}

// TestDial: connections are made by the function in the configuration, which need not
// know the name of the receiver.
func TestDial(t *testing.T) {
	address := serve(t, func(context.Context, string, []byte) ([]byte, error) { return []byte("done"), nil })
	cfg := to("receiver.invalid:1")
	cfg.Dial = func(ctx context.Context) (net.Conn, error) { return new(net.Dialer).DialContext(ctx, "tcp", address) }
	if answer, err := connect(t, cfg).Export(t.Context(), []byte("x")); err != nil || string(answer) != "done" {
		t.Errorf("%q, %v", answer, err)
	}
}

// TestCallsConnectAgain: a call after one without an answer opens a connection at once. A
// receiver that vanishes without closing its connection costs one call.
func TestCallsConnectAgain(t *testing.T) {
	address := serve(t, func(context.Context, string, []byte) ([]byte, error) { return []byte("done"), nil })
	var gone atomic.Bool
	var attempts, broken int // of Dial, which one call after the other makes
	cfg := to("receiver.invalid:1")
	cfg.Dial = func(ctx context.Context) (net.Conn, error) {
		if attempts++; broken > 0 {
			broken--
			return nil, errors.New("down")
		}
		c, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		was := &gone
		if attempts > 1 {
			was = new(atomic.Bool)
		}
		return sinktest.Silent{Conn: c, Gone: was}, err
	}
	tr := connect(t, cfg)
	for range 2 {
		if _, err := tr.Export(t.Context(), []byte("x")); err != nil || attempts != 1 {
			t.Fatal(err, attempts)
		}
	}
	gone.Store(true)
	broken = 5
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := tr.Export(ctx, []byte("x"))
	checkClass(t, err, sinkqueue.ErrAmbiguous)
	for n := 2; n < 7; n++ {
		_, err := tr.Export(t.Context(), []byte("x"))
		if checkClass(t, err, nil); attempts != n {
			t.Errorf("%d attempts to connect, want %d", attempts, n)
		}
	}
	if answer, err := tr.Export(t.Context(), []byte("x")); err != nil || string(answer) != "done" || attempts != 7 {
		t.Errorf("%q, %v after %d attempts to connect", answer, err, attempts)
	}
	tr.Close()
	if _, err := tr.Export(t.Context(), []byte("x")); err == nil || attempts != 7 {
		t.Errorf("%v after Close, %d attempts to connect", err, attempts)
	}
}
