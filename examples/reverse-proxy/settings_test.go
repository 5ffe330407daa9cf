package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/bootstrap"
	"github.com/statsd-admin/statsd-admin/upstream"
)

func TestRequestsPerConnection(t *testing.T) {
	b := newBackend(t, "127.0.0.1:0")
	r := start(t, static("max_requests_per_connection: 2", b), web(Route{}))
	for range 6 {
		r.get()
	}
	if n := b.accepted.Load(); n != 3 {
		t.Errorf("%d connections for 6 requests, want 3", n)
	}
	r.want(map[string]int{"upstream_cx_max_requests": 3, "upstream_cx_active": 0, "upstream_rq_200": 6})
}

func TestConnectionsEndInTime(t *testing.T) {
	for options, counted := range map[string]string{
		"idle_timeout: 0.001s":                                 "upstream_cx_idle_timeout",
		"idle_timeout: 3600s, max_connection_duration: 0.001s": "upstream_cx_max_duration_reached",
	} {
		r := start(t, static("common_http_protocol_options: {"+options+"}", newBackend(t, "127.0.0.1:0")), web(Route{}))
		r.get()
		eventually(t, "the connection is closed", func() bool { return r.stat("cluster.backend.upstream_cx_active") == 0 })
		r.want(map[string]int{counted: 1, "upstream_cx_destroy_local": 1})
	}
}

func TestHeadersOfAnswersAreLimited(t *testing.T) {
	tests := []struct {
		options     string
		many, bytes int // headers, length of one
		want        int
	}{
		{"", 90, 1, 200},
		{"", 110, 1, 502},
		{"max_headers_count: 200", 110, 1, 200},
		{"max_headers_count: 5", 10, 1, 502},
		{"", 1, 50 << 10, 200},
		{"", 1, 70 << 10, 502},
		{"max_response_headers_kb: 1", 1, 2 << 10, 502},
	}
	for _, tt := range tests {
		b := newBackend(t, "127.0.0.1:0")
		b.does(func(w http.ResponseWriter, _ *http.Request) {
			for i := range tt.many {
				w.Header().Set(fmt.Sprint("X-", i), strings.Repeat("x", tt.bytes))
			}
		})
		r := start(t, static("common_http_protocol_options: {"+tt.options+"}", b), web(Route{}))
		if code, _, _ := r.get(); code != tt.want {
			t.Errorf("%q: answer %d with %d headers of %d bytes, want %d", tt.options, code, tt.many, tt.bytes, tt.want)
		}
		if n := r.stat("cluster.backend.upstream_cx_protocol_error"); (n == 1) != (tt.want == 502) {
			t.Errorf("%q: %d protocol errors", tt.options, n)
		}
	}
}

func TestStreamDurationIsLimited(t *testing.T) {
	b := newBackend(t, "127.0.0.1:0")
	release := make(chan struct{})
	defer close(release)
	b.does(func(http.ResponseWriter, *http.Request) { <-release })
	r := start(t, static("common_http_protocol_options: {max_stream_duration: 0.02s}", b), web(Route{Timeout: Duration(time.Minute), Retries: 2}))
	if code, _, _ := r.get(); code != http.StatusRequestTimeout {
		t.Errorf("answer %d, want 408", code)
	}
	r.want(map[string]int{"upstream_rq_max_duration_reached": 1, "upstream_rq_timeout": 0, "upstream_rq_408": 1, "upstream_rq_retry": 0})
}

func TestSmallBuffersPassEverything(t *testing.T) {
	b := newBackend(t, "127.0.0.1:0")
	b.does(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // the answer shows the loss
		_, _ = w.Write(body)
	})
	r := start(t, static("per_connection_buffer_limit_bytes: 1", b), web(Route{}))
	if n := r.cluster().BufferSize(4 << 10); n != 1 {
		t.Errorf("buffers of %d bytes, want 1", n)
	}
	sent := strings.Repeat("0123456789", 1000)
	resp, err := r.client.Post("http://"+r.address("web"), "text/plain", strings.NewReader(sent))
	if err != nil {
		t.Fatal(err)
	}
	back, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil || string(back) != sent {
		t.Errorf("%d bytes came back, %v; want %d", len(back), err, len(sent))
	}
}

func TestClustersThatCannotBeServedAreRefused(t *testing.T) {
	b := newBackend(t, "127.0.0.1:0")
	for text, field := range map[string]string{
		"http2_protocol_options: {}":                                  "http2_protocol_options",
		"http_protocol_options: {enable_trailers: true}":              "http_protocol_options.enable_trailers",
		"http_protocol_options: {allow_chunked_length: true}":         "http_protocol_options.allow_chunked_length",
		"http_protocol_options: {send_fully_qualified_url: true}":     "http_protocol_options.send_fully_qualified_url",
		"upstream_http_protocol_options: {auto_sni: true}":            "upstream_http_protocol_options.auto_sni",
		"upstream_http_protocol_options: {auto_san_validation: true}": "upstream_http_protocol_options.auto_san_validation",
		"filters: [{name: f}]":                                        "filters",
		"protocol_selection: USE_DOWNSTREAM_PROTOCOL":                 "", // clients speak HTTP/1 too
		"http_protocol_options: {}":                                   "",
	} {
		boot, err := bootstrap.Parse("boot.yaml", []byte("admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}\n"+static(text, b)), bootstrap.Options{})
		if err != nil {
			t.Fatal(err)
		}
		cfg, err := boot.Server(bootstrap.Startup{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = newProxy(cfg, []Route{web(Route{})})
		var refused *upstream.Unsupported
		if errors.As(err, &refused) != (field != "") || field != "" && refused.Field != field {
			t.Errorf("%s: error %v, want field %q", text, err, field)
		}
		if _, err := newProxy(cfg, []Route{{Name: "web", Cluster: "other"}}); err != nil && field != "filters" {
			t.Errorf("%s: error %v where no requests go there", text, err)
		}
	}
}

func TestOverloadIsShed(t *testing.T) {
	b := newBackend(t, "127.0.0.1:0")
	text := strings.Replace(static("", b), "      cluster_name: backend\n", "      cluster_name: backend\n      policy: {drop_overloads: [{category: all, drop_percentage: {numerator: 100}}]}\n", 1)
	r := start(t, text, web(Route{}))
	for range 3 {
		if code, _, _ := r.get(); code != 503 {
			t.Errorf("answer %d, want 503", code)
		}
	}
	r.want(map[string]int{"upstream_rq_503": 3, "upstream_rq_total": 0, "upstream_cx_total": 0})
	if n := r.cluster().DroppedRequests(); n != 3 || b.requests.Load() != 0 {
		t.Errorf("%d requests dropped, the host got %d", n, b.requests.Load())
	}
}

// TestUnknownSettings: a misspelled setting, or a setting of an earlier version, is an error
// that names it.
func TestUnknownSettings(t *testing.T) {
	file := filepath.Join(t.TempDir(), "listeners.json")
	if err := os.WriteFile(file, []byte(`[{"name": "web", "protocol": "tcp"}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readRoutes(file); err == nil || !strings.Contains(err.Error(), `listeners.json: json: unknown field "protocol"`) {
		t.Errorf("error %v", err)
	}
}
