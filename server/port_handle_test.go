package server_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/guard/guardtest"
	"github.com/statsd-admin/statsd-admin/internal/waittest"
	"github.com/statsd-admin/statsd-admin/server"
	"github.com/statsd-admin/statsd-admin/server/certs"
	"github.com/statsd-admin/statsd-admin/server/logctl"
	"github.com/statsd-admin/statsd-admin/store"
)

// TestListenerHandle checks that a panic of Handle ends its own connection only, and
// that the server closes the open connections at its end.
func TestListenerHandle(t *testing.T) {
	ended := make(chan error, 1)
	panics := guardtest.New(t)
	r := start(t, server.Config{Admin: anyPort(), OnPanic: func(where string, v any) { panics.Guard().Report(where, v) }, Loggers: quiet(t), Listeners: []server.Listener{{Name: "tcp", Address: "127.0.0.1:0", Handle: func(_ context.Context, c net.Conn) {
		first := make([]byte, 1)
		if _, err := io.ReadFull(c, first); err != nil {
			return
		}
		if first[0] == '!' {
			panic(guardtest.Canary)
		}
		_, _ = c.Write(first)
		_, err := c.Read(first) // until the server closes it
		ended <- err
	}}}})
	at := r.Listeners().List()[0].Addresses[0].String()
	for _, text := range []string{"!", "a"} {
		c, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, text); err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(io.LimitReader(c, 1))
		if want := strings.TrimPrefix(text, "!"); string(b) != want {
			t.Errorf("%q: got %q, %v", text, b, err)
		}
	}
	panics.Caught("connection of a listener")
	if got := r.get(t, "/stats?filter=^server.recovered_panics$"); got != "server.recovered_panics: 1\n" {
		t.Errorf("got %q", got)
	}
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	if err := <-ended; err == nil {
		t.Error("the connection was not closed")
	}
}

func TestListenersNeedOneFunction(t *testing.T) {
	handle, serve := func(context.Context, net.Conn) {}, func(context.Context, net.Listener) error { return nil }
	for _, l := range []server.Listener{{}, {Handle: handle, Serve: serve}, {Handle: handle, HTTP: http.NotFoundHandler()}, {Handle: handle, Serve: serve, HTTP: http.NotFoundHandler()}} {
		l.Name, l.Address = "l", "127.0.0.1:0"
		s, err := server.New(server.Config{Loggers: quiet(t), Listeners: []server.Listener{l}})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Listen(); err == nil || err.Error() != `server: listener "l" needs exactly one of Serve, Handle and HTTP` {
			t.Errorf("error %v", err)
		}
	}
}

// TestListenersDoNotShareStats: http.admin belongs to the administration port.
func TestListenersDoNotShareStats(t *testing.T) {
	l := server.Listener{Name: "admin", Address: "127.0.0.1:0", HTTP: http.NotFoundHandler()}
	s, err := server.New(server.Config{Loggers: quiet(t), Listeners: []server.Listener{l}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Listen(); err == nil || !strings.Contains(err.Error(), `cannot be named "admin"`) {
		t.Errorf("error %v", err)
	}
}

// TestListenerWithTLS checks that a listener serves the certificate of its files, also
// a later one, and shows when it expires.
func TestListenerWithTLS(t *testing.T) {
	dir := t.TempDir()
	files := &certs.Files{Chain: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem")}
	echo := func(_ context.Context, c net.Conn) {
		if _, err := io.Copy(c, c); err != nil {
			t.Error(err)
		}
		if err := c.(*tls.Conn).CloseWrite(); err != nil {
			t.Error(err)
		}
	}
	cfg := server.Config{Admin: anyPort(), Loggers: quiet(t), Listeners: []server.Listener{{Name: "tls", Address: "127.0.0.1:0", TLS: files, Handle: echo}}}
	if _, err := server.New(cfg); err == nil || !strings.HasPrefix(err.Error(), `server: listener "tls": certs: `) {
		t.Errorf("without files: %v", err)
	}
	until := time.Now().Add(24 * time.Hour).Truncate(time.Second)
	first := pair(t, dir, 0xa1, until)
	r := start(t, cfg)
	at := r.Listeners().List()[0].Addresses[0].String()
	check := func(want *x509.Certificate) {
		t.Helper()
		pool := x509.NewCertPool()
		pool.AddCert(want)
		c, err := tls.Dial("tcp", at, &tls.Config{RootCAs: pool})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, "hello"); err != nil {
			t.Fatal(err)
		}
		if err := c.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(c); string(b) != "hello" || err != nil {
			t.Errorf("got %q, %v", b, err)
		}
		name := "listener." + strings.ReplaceAll(at, ":", "_") + ".ssl.certificate.cert.expiration_unix_time_seconds"
		if got, line := r.get(t, "/stats?filter=ssl.certificate"), fmt.Sprintf("%s: %d\n", name, want.NotAfter.Unix()); got != line {
			t.Errorf("got %q, want %q", got, line)
		}
		if got := r.get(t, "/certs"); !strings.Contains(got, `"serial_number": "`+want.SerialNumber.Text(16)+`"`) {
			t.Errorf("/certs: %s", got)
		}
	}
	check(first)
	second := pair(t, dir, 0xa2, until.Add(time.Hour))
	r.Reload()
	r.Flusher().FlushNow()
	check(second)
}

// TestListenerHTTP serves requests on one connection: a panic of the handler breaks it
// and is counted, a draining server asks the client to close it, and the end of the
// server waits for the request that runs.
func TestListenerHTTP(t *testing.T) {
	running, finish := make(chan struct{}), make(chan struct{})
	panics := guardtest.New(t)
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/panic":
			panic(guardtest.Canary)
		case "/slow":
			close(running)
			<-finish
		}
		_, _ = io.WriteString(w, "hello")
	})
	r := start(t, server.Config{Admin: anyPort(), OnPanic: func(where string, v any) { panics.Guard().Report(where, v) }, Loggers: quiet(t), Listeners: []server.Listener{
		{Name: "web", Address: "127.0.0.1:0", HTTP: handler},
	}})
	base := "http://" + r.Listeners().List()[0].Addresses[0].String()
	get := func(path string) (body string, closes bool, err error) {
		resp, err := http.Get(base + path)
		if err != nil {
			return "", false, err
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		return string(b), resp.Close, err
	}
	if body, closes, err := get("/"); body != "hello" || closes || err != nil {
		t.Errorf("got %q, closes %t, %v", body, closes, err)
	}
	if resp, err := http.Post(base+"/panic", "text/plain", strings.NewReader("x")); err == nil { // a GET would be sent again
		resp.Body.Close()
		t.Error("a panic left the connection open")
	}
	panics.Caught("request of a listener")
	r.post(t, "/healthcheck/fail")
	if body, closes, err := get("/"); body != "hello" || !closes || err != nil {
		t.Errorf("while the health check is failed: got %q, closes %t, %v", body, closes, err)
	}

	answer := make(chan string)
	go func() {
		body, _, err := get("/slow")
		answer <- fmt.Sprint(body, err)
	}()
	<-running
	stopped := make(chan error)
	go func() { stopped <- r.stop() }()
	for {
		c, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
		if err != nil {
			break // the listener is closed
		}
		_ = c.Close()
	}
	close(finish)
	if got := <-answer; got != "hello<nil>" {
		t.Errorf("the running request got %q", got)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

// TestListenerHTTPStats checks that handlers have all that net/http gives them, and that
// requests and connections are counted below the name of the listener.
func TestListenerHTTPStats(t *testing.T) {
	dir := t.TempDir()
	cert := pair(t, dir, 0xa1, time.Now().Add(time.Hour))
	leave := make(chan string)
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS == nil || !r.TLS.HandshakeComplete {
			t.Errorf("TLS state %+v", r.TLS)
		}
		switch r.URL.Path {
		case "/flush":
			w.(http.Flusher).Flush()
		case "/copy":
			_, _ = w.(io.ReaderFrom).ReadFrom(strings.NewReader("hello"))
		case "/hijack":
			c, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello")
			_ = c.Close()
		case "/missing":
			http.NotFound(w, r)
		case "/leave":
			leave <- r.URL.Path
			<-r.Context().Done()
		case "/ignore": // errors of writes
			w.(http.Flusher).Flush()
			leave <- r.URL.Path
			<-r.Context().Done()
			for err := error(nil); err == nil; _, err = io.WriteString(w, "i") { // the system may take some more
				w.(http.Flusher).Flush()
			}
		}
	})
	r := start(t, server.Config{Admin: anyPort(), Loggers: quiet(t), Listeners: []server.Listener{{
		Name: "web", Address: "127.0.0.1:0", HTTP: handler, TLS: &certs.Files{Chain: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem")},
	}}})
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	at := r.Listeners().List()[0].Addresses[0].String()
	for _, closes := range []bool{false, true} {
		for path, want := range map[string]string{"/nothing": "", "/flush": "", "/copy": "hello", "/missing": "404 page not found\n"} {
			resp, err := client.Get("https://" + at + path)
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if string(b) != want || err != nil || resp.Close != closes {
				t.Errorf("%s: got %q, %v, closes %t, want %t", path, b, err, resp.Close, closes)
			}
		}
		r.post(t, "/healthcheck/fail")
	}
	resp, err := client.Get("https://" + at + "/hijack")
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(resp.Body); string(b) != "hello" || err != nil {
		t.Errorf("hijacked: got %q, %v", b, err)
	}
	resp.Body.Close()
	plain, err := http.Get("http://" + at + "/nothing")
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(plain.Body); plain.StatusCode != http.StatusBadRequest || string(b) != "this port speaks TLS: use https\n" || err != nil {
		t.Errorf("without TLS: got %s, %q, %v", plain.Status, b, err)
	}
	plain.Body.Close()
	for _, path := range []string{"/leave", "/ignore"} {
		c, err := tls.Dial("tcp", at, &tls.Config{RootCAs: pool})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		<-leave
		_ = c.Close()
	}
	below := "listener." + strings.ReplaceAll(at, ":", "_") + ".http.web.downstream_rq_"
	for name, want := range map[string]string{
		"http.web.downstream_rq_total": "11", "http.web.rq_total": "11", "http.web.downstream_rq_completed": "11", "http.web.downstream_rq_active": "0",
		"http.web.downstream_rq_2xx": "9", "http.web.downstream_rq_4xx": "2", "http.web.downstream_rq_5xx": "0",
		"http.web.downstream_rq_rx_reset": "2", "http.web.downstream_rq_tx_reset": "0", "http.web.downstream_cx_active": "0",
		"http.web.downstream_cx_destroy_remote_active_rq": "2", below + "2xx": "9", below + "completed": "11",
	} {
		waittest.Until(t, name+" is "+want, func() bool { return r.get(t, "/stats?filter=^"+name+"$") == name+": "+want+"\n" })
	}
	described := r.Store().Descriptions()
	v := r.Store().View()
	defer v.Close()
	for k := range store.KindHistogram + 1 {
		for c := v.ByFamily(k); c.Next(); {
			if f := c.Family(); f != nil && strings.HasPrefix(f.String(), "http.") && described[f.String()].Help == "" {
				t.Errorf("%s has no help text", f)
			}
		}
	}
}

// TestHijackedResponses counts what handlers send on connections that they take over.
func TestHijackedResponses(t *testing.T) {
	for name, c := range map[string]struct {
		sends string
		begin int // status that is set before
		want  string
	}{
		"upgrade":  {sends: "HTTP/1.1 101 Switching Protocols\r\n\r\nhello", want: "1xx"},
		"begun":    {begin: http.StatusSwitchingProtocols, sends: "hello", want: "1xx"},
		"connect":  {sends: "HTTP/1.1 200 Connection established\r\n\r\nHTTP/1.1 500", want: "2xx"},
		"refused":  {sends: "HTTP/1.0 502 Bad Gateway\r\n\r\n", want: "5xx"},
		"hinted":   {begin: http.StatusEarlyHints, sends: "HTTP/1.1 502 Bad Gateway\r\n\r\n", want: "5xx"},
		"nothing":  {},
		"no-http":  {sends: "hello"},
		"no-digit": {sends: "HTTP/1.1 2x0 OK\r\n\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, server.Config{Admin: anyPort(), Loggers: quiet(t), Listeners: []server.Listener{{
				Name: "web", Address: "127.0.0.1:0", HTTP: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					if c.begin != 0 {
						w.WriteHeader(c.begin)
					}
					conn, rw, err := w.(http.Hijacker).Hijack()
					if err != nil {
						t.Error(err)
						return
					}
					_, _ = rw.WriteString(c.sends)
					_ = rw.Flush()
					_ = conn.Close()
				}),
			}}})
			conn, err := net.Dial("tcp", r.Listeners().List()[0].Addresses[0].String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			if b, err := io.ReadAll(conn); !strings.HasSuffix(string(b), c.sends) || err != nil {
				t.Errorf("got %q, %v", b, err)
			}
			waittest.Until(t, "the request ends", func() bool {
				return r.get(t, "/stats?filter=^http.web.downstream_rq_completed$") == "http.web.downstream_rq_completed: 1\n"
			})
			for _, class := range []string{"1xx", "2xx", "3xx", "4xx", "5xx"} {
				want := "0"
				if class == c.want {
					want = "1"
				}
				stat := "http.web.downstream_rq_" + class
				if got := r.get(t, "/stats?filter=^"+stat+"$"); got != stat+": "+want+"\n" {
					t.Errorf("got %q, want %s", got, want)
				}
			}
		})
	}
}

// TestEarlyHints: a response that follows hints is counted, not the hints.
func TestEarlyHints(t *testing.T) {
	r := start(t, server.Config{Admin: anyPort(), Loggers: quiet(t), Listeners: []server.Listener{{
		Name: "web", Address: "127.0.0.1:0", HTTP: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusEarlyHints)
		}),
	}}})
	res, err := http.Get("http://" + r.Listeners().List()[0].Addresses[0].String())
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusOK {
		t.Errorf("status %d", res.StatusCode)
	}
	waittest.Until(t, "the response is counted", func() bool {
		return r.get(t, "/stats?filter=^http.web.downstream_rq_[0-9]xx$&usedonly") == "http.web.downstream_rq_2xx: 1\n"
	})
}

// TestListenerHandshakes counts the TLS handshakes of listeners of each kind.
func TestListenerHandshakes(t *testing.T) {
	read := func(c net.Conn) {
		_, _ = c.Read(make([]byte, 1))
		_ = c.Close()
	}
	for name, l := range map[string]server.Listener{
		"http":   {HTTP: http.NotFoundHandler()},
		"handle": {Handle: func(_ context.Context, c net.Conn) { read(c) }},
		"serve": {Serve: func(_ context.Context, l net.Listener) error {
			var conns sync.WaitGroup
			defer conns.Wait()
			for {
				c, err := l.Accept()
				if err != nil {
					return nil
				}
				conns.Go(func() { read(c) })
			}
		}},
	} {
		t.Run(name, func(t *testing.T) { checkHandshakes(t, l) })
	}
}

// checkHandshakes counts the handshakes of a listener. Of many failures the log shows one.
func checkHandshakes(t *testing.T, l server.Listener) {
	dir := t.TempDir()
	pair(t, dir, 0xa2, time.Now().Add(time.Hour))
	log := filepath.Join(dir, "app.log")
	loggers, err := logctl.New(logctl.Config{Level: logctl.Debug, Path: log})
	if err != nil {
		t.Fatal(err)
	}
	l.Name, l.Address, l.TLS = "web", "127.0.0.1:0", &certs.Files{Chain: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem")}
	r := start(t, server.Config{Admin: anyPort(), Loggers: loggers, LogFile: loggers, Listeners: []server.Listener{l}})
	at := r.Listeners().List()[0].Addresses[0].String()
	const failures = 20
	var peers []string
	begin := time.Now()
	for range failures {
		c, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		peers = append(peers, c.LocalAddr().String())
		_, _ = io.WriteString(c, "canary canary\n")
		_, _ = io.Copy(io.Discard, c)
		_ = c.Close()
	}
	took := time.Since(begin)
	good, err := tls.Dial("tcp", at, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(good, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	_, _ = io.Copy(io.Discard, good)
	_ = good.Close()
	for name, want := range map[string]string{"handshake": "1", "connection_error": strconv.Itoa(failures)} {
		stat := "listener." + strings.ReplaceAll(at, ":", "_") + ".ssl." + name
		waittest.Until(t, stat+" is "+want, func() bool { return r.get(t, "/stats?filter=^"+stat+"$") == stat+": "+want+"\n" })
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), "TLS handshake failed"); n < 1 || n > 1+int(took/time.Second) {
		t.Errorf("%d lines in %v, want 1 a second:\n%s", n, took, text)
	}
	named := func(peer string) bool { return strings.Contains(string(text), "peer="+peer+" ") }
	if !slices.ContainsFunc(peers, named) || !strings.Contains(string(text), "does not look like a TLS handshake") || strings.Contains(string(text), "canary") {
		t.Errorf("no peer of %s, no reason or the text of the peer:\n%s", peers, text)
	}
}
