package main

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// TestClientsAreCounted lets connections and requests of clients end in every way
// there is. Counts that are not named are 0.
func TestClientsAreCounted(t *testing.T) {
	const request = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
	soon := Duration(50 * time.Millisecond)
	for _, tt := range []struct {
		name  string
		route Route
		host  func(w http.ResponseWriter, gone <-chan struct{})
		sends string
		stays bool // until the proxy closes the connection
		takes string
		want  map[string]int
	}{
		{"leaves after the answer", Route{}, nil, request, false, "HTTP/1.1 200 OK", map[string]int{"rq_completed": 1, "rq_2xx": 1, "cx_destroy_remote": 1}},
		{"idle after the answer", Route{IdleTimeout: soon}, nil, request, true, "HTTP/1.1 200 OK",
			map[string]int{"rq_completed": 1, "rq_2xx": 1, "cx_destroy_local": 1, "cx_idle_timeout": 1}},
		{"says nothing", Route{ReadTimeout: soon}, nil, "", true, "", map[string]int{"cx_destroy_local": 1, "cx_idle_timeout": 1}},
		{"half a header", Route{ReadTimeout: soon}, nil, request[:20], true, "HTTP/1.1 400 Bad Request", map[string]int{"cx_destroy_local": 1, "rq_timeout": 1}},
		{"half a body", Route{ReadTimeout: soon}, nil, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nfour", true, "HTTP/1.1 408 Request Timeout",
			map[string]int{"rq_completed": 1, "rq_4xx": 1, "cx_destroy_local": 1, "rq_timeout": 1}},
		{"leaves before the answer", Route{}, func(_ http.ResponseWriter, gone <-chan struct{}) { <-gone }, request, false, "",
			map[string]int{"rq_completed": 1, "rq_4xx": 1, "cx_destroy_remote": 1, "cx_destroy_active_rq": 1, "cx_destroy_remote_active_rq": 1, "rq_rx_reset": 1}},
		{"leaves within the answer", Route{}, func(w http.ResponseWriter, gone <-chan struct{}) {
			w.Header().Set("Content-Length", "10")
			_, _ = io.WriteString(w, "half")
			_ = http.NewResponseController(w).Flush()
			<-gone
		}, request, false, "HTTP/1.1 200 OK",
			map[string]int{"rq_completed": 1, "rq_2xx": 1, "cx_destroy_remote": 1, "cx_destroy_active_rq": 1, "cx_destroy_remote_active_rq": 1, "rq_rx_reset": 1}},
		{"the host breaks off", Route{}, func(w http.ResponseWriter, _ <-chan struct{}) {
			w.Header().Set("Content-Length", "10")
			_, _ = io.WriteString(w, "half")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}, request, true, "HTTP/1.1 200 OK",
			map[string]int{"rq_completed": 1, "rq_2xx": 1, "cx_destroy_local": 1, "cx_destroy_active_rq": 1, "cx_destroy_local_active_rq": 1, "rq_tx_reset": 1}},
	} {
		t.Run(strings.ReplaceAll(tt.name, " ", "-"), func(t *testing.T) {
			b := newBackend(t, "127.0.0.1:0")
			if tt.host != nil {
				b.does(func(w http.ResponseWriter, r *http.Request) { tt.host(w, r.Context().Done()) })
			}
			r := start(t, static("", b), web(tt.route))
			c, err := net.Dial("tcp", r.address("web"))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if _, err := io.WriteString(c, tt.sends); err != nil {
				t.Fatal(err)
			}
			if tt.takes != "" {
				resp, err := http.ReadResponse(bufio.NewReader(c), nil)
				if err != nil {
					t.Fatal(err)
				}
				if got := resp.Proto + " " + resp.Status; got != tt.takes {
					t.Errorf("answer %s, want %s", got, tt.takes)
				}
			} else if !tt.stays {
				eventually(t, "the request is with the host", func() bool { return b.requests.Load() == 1 })
			}
			if tt.stays {
				_ = c.SetReadDeadline(time.Now().Add(30 * time.Second)) // sooner than the idle timeout
				if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) {
					t.Error("the connection stays open")
				}
			}
			_ = c.Close()
			want := map[string]int{"cx_total": 1, "cx_active": 0, "cx_destroy": 1, "cx_rx_bytes_total": len(tt.sends)}
			for _, name := range strings.Fields("rq_completed rq_1xx rq_2xx rq_3xx rq_4xx rq_5xx cx_idle_timeout cx_destroy_local cx_destroy_remote " +
				"cx_destroy_active_rq cx_destroy_local_active_rq cx_destroy_remote_active_rq rq_timeout rq_rx_reset rq_tx_reset") {
				want[name] = tt.want[name]
			}
			below := "listener." + strings.ReplaceAll(r.address("web"), ":", "_") + ".http.web."
			all := map[string]int{}
			for name, n := range want {
				all["http.web.downstream_"+name] = n
				if _, ok := strings.CutSuffix(name, "xx"); ok || name == "rq_completed" {
					all[below+"downstream_"+name] = n
				}
			}
			r.want(all)
			if sent := r.stat("http.web.downstream_cx_tx_bytes_total"); (sent > 0) != (tt.takes != "" || tt.want["rq_4xx"] > 0) {
				t.Errorf("%d bytes sent", sent)
			}
		})
	}
}

// TestOrigins: a request comes from inside if its client has a private address and no
// other proxy forwarded it.
func TestOrigins(t *testing.T) {
	r := start(t, static("", newBackend(t, "127.0.0.1:0")), web(Route{}))
	for _, header := range [][]string{nil, {"X-Forwarded-For", "203.0.113.7"}, {"X-Forwarded-For", "10.0.0.7"}} {
		if code, _, _ := r.get(header...); code != 200 {
			t.Errorf("status %d", code)
		}
	}
	r.want(map[string]int{"internal.upstream_rq_200": 1, "external.upstream_rq_200": 2, "external.upstream_rq_2xx": 2, "upstream_rq_200": 3})
}
