package server_test

import (
	"bufio"
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/waittest"
	"github.com/statsd-admin/statsd-admin/server"
	"github.com/statsd-admin/statsd-admin/server/envoyapi"
)

// openTap posts a request to /tap, with further header lines, and returns the response
// after its status line.
func openTap(t *testing.T, r *running, body string, header ...string) (status string, conn net.Conn, in *bufio.Reader) {
	t.Helper()
	conn, err := net.Dial("tcp", r.Admin().Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "POST /tap HTTP/1.1\r\nhost: localhost\r\n%scontent-length: %d\r\n\r\n%s", strings.Join(header, ""), len(body), body)
	in = bufio.NewReader(conn)
	if status, err = in.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(status), conn, in
}

// expect reads lines until one contains text.
func expect(t *testing.T, in *bufio.Reader, text string) {
	t.Helper()
	for {
		l, err := in.ReadString('\n')
		if err != nil {
			t.Fatalf("no %s: %v", text, err)
		}
		if strings.Contains(l, text) {
			return
		}
	}
}

func tapBody(id string) string {
	return "config_id: " + id + "\ntap_config:\n  match: {any_match: true}\n  output_config:\n    sinks: [{streaming_admin: {}, format: JSON_BODY_AS_STRING}]\n"
}

// withTap adds /tap to a configuration.
func withTap(cfg server.Config) server.Config {
	envoyapi.AddTap(&cfg)
	return cfg
}

func TestTap(t *testing.T) {
	r := start(t, withTap(server.Config{Admin: anyPort(), StatsD: statsdOn("tcp://127.0.0.1:0")}))
	if got := r.get(t, "/tap"); got != "Method GET not allowed, POST required." {
		t.Errorf("GET: %q", got)
	}
	if reply := r.post(t, "/tap"); reply.Status != 400 || string(reply.Body) != "/tap requires a JSON/YAML body" {
		t.Errorf("no body: %d %q", reply.Status, reply.Body)
	}
	status, conn, in := openTap(t, r, tapBody("statsd"))
	if status != "HTTP/1.1 200 OK" {
		t.Fatal(status)
	}
	if status, _, in := openTap(t, r, tapBody("statsd")); status != "HTTP/1.1 400 Bad Request" {
		t.Errorf("a second stream: %s", status)
	} else {
		expect(t, in, "\r\n")
	}
	c, err := net.Dial("tcp", strings.TrimPrefix(r.StatsD().Listeners()[0].Address, "tcp://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "hits:1|c|#k:v\nnot a line\nlast:2|c\n")
	expect(t, in, fmt.Sprintf(`"port_value": %d`, c.LocalAddr().(*net.TCPAddr).Port))
	expect(t, in, `"as_string": "hits:1|c|#k:v"`)
	expect(t, in, `"trace_id": "2"`)
	expect(t, in, `"as_string": "last:2|c"`)
	conn.Close()
	waittest.Until(t, "the stream of a client that went ends", func() bool {
		fmt.Fprint(c, "hits:1|c\n")
		status, conn, in = openTap(t, r, tapBody("admin"))
		return status == "HTTP/1.1 200 OK"
	})
	r.post(t, "/logging?level=warning")
	expect(t, in, `":method"`)
	expect(t, in, `"POST"`)
	expect(t, in, `"/logging?level"`)
	expect(t, in, `":status"`)
	expect(t, in, `"200"`)
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	for err == nil {
		_, err = in.ReadString('\n')
	}
}

// TestSilentTapEndsWithItsClient checks that a disconnected client is detected even
// if there are no traces to send.
func TestSilentTapEndsWithItsClient(t *testing.T) {
	r := start(t, withTap(server.Config{Admin: anyPort(), StatsD: statsdOn("tcp://127.0.0.1:0")}))
	body := strings.Replace(tapBody("statsd"), "JSON_BODY_AS_STRING", "PROTO_BINARY_LENGTH_DELIMITED", 1)
	for range 3 {
		var conn net.Conn
		waittest.Until(t, "the stream of the client before ends", func() bool {
			var status string
			status, conn, _ = openTap(t, r, body)
			return status == "HTTP/1.1 200 OK"
		})
		conn.Close()
	}
}

// TestTapOfCurl checks that the type that curl -d gives to every body does not hide the
// selection, and that a form still works.
func TestTapOfCurl(t *testing.T) {
	const form = "content-type: application/x-www-form-urlencoded\r\n"
	json := `{"config_id": "statsd", "tap_config": {"match": {"any_match": true}, "output_config": {"sinks": [{"streaming_admin": {}}]}}}`
	for _, body := range []string{tapBody("statsd"), json, "# a=b&c\n" + tapBody("statsd"), "config=" + url.QueryEscape(json)} {
		r := start(t, withTap(server.Config{Admin: anyPort(), StatsD: statsdOn("tcp://127.0.0.1:0")}))
		if status, _, _ := openTap(t, r, body, form); status != "HTTP/1.1 200 OK" {
			t.Errorf("%q: %s", body, status)
		}
		if err := r.stop(); err != nil {
			t.Error(err)
		}
	}
}

func TestNoTap(t *testing.T) {
	r := start(t, server.Config{Admin: anyPort()})
	if reply := r.post(t, "/tap"); reply.Status != 404 {
		t.Errorf("without a tap: %d", reply.Status)
	}
}
