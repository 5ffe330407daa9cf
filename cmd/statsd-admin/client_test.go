package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/internal/certtest"
	"github.com/statsd-admin/statsd-admin/internal/golden"
)

// invoke runs the program with a command line.
func invoke(stdin io.Reader, args ...string) (status int, stdout, stderr string) {
	var out, err bytes.Buffer
	p := program{stdin: stdin, stdout: &out, stderr: &err, hardware: 2}
	status = p.run(context.Background(), args)
	return status, out.String(), err.String()
}

// running returns a daemon that serves a configuration until the test ends.
func running(t *testing.T, config string) instance {
	t.Helper()
	return serving(t, "--disable-hot-restart", "--config-yaml", config)
}

// serving returns a daemon that serves with the options args until the test ends.
func serving(t *testing.T, args ...string) instance {
	t.Helper()
	d, _ := instanceOf(t, t.TempDir(), args)
	if err := d.Listen(); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	<-d.Initialized()
	return d
}

// shortDir returns a directory whose name is short enough for sockets.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "sa")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// selfSigned writes a certificate for 127.0.0.1 and its key to dir.
func selfSigned(t *testing.T, dir string) (cert, key string) {
	t.Helper()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	certtest.Issue(t, &x509.Certificate{
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, nil).Write(t, cert, key)
	return cert, key
}

const onLoopback = "address: {socket_address: {address: 127.0.0.1, port_value: 0}}"

func TestHelpOfSubcommands(t *testing.T) {
	for _, name := range []string{"bundle", "completion", "convert", "get", "healthcheck", "lint", "man", "send", "top"} {
		status, stdout, stderr := invoke(nil, name, "--help")
		if status != 0 || stderr != "" {
			t.Errorf("%s: status %d, %q", name, status, stderr)
		}
		golden.Check(t, name+"-help", []byte(stdout))
	}
}

// TestExitStatusOfSubcommandsIsDocumented checks that no subcommand is missing from the
// table of docs/deployment.md, and that each help says it too.
func TestExitStatusOfSubcommandsIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/deployment.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "\n## Exit status\n")
	for _, c := range new(program).commands() {
		if !strings.Contains(table, "`"+c.name+"`") {
			t.Errorf("docs/deployment.md does not list the exit status of %s", c.name)
		}
		if !strings.Contains(c.details, "exit status is ") {
			t.Errorf("the help of %s does not state its exit status", c.name)
		}
	}
}

// TestGetFollowsNoRedirect: the token is for the address of the command line alone.
func TestGetFollowsNoRedirect(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/here" {
			t.Errorf("%s is requested", r.URL)
		}
		w.Header().Set("Location", "/there")
		w.WriteHeader(http.StatusFound)
		_, _ = io.WriteString(w, "elsewhere")
	}))
	defer s.Close()
	if status, stdout, stderr := invoke(nil, "get", "--address", s.URL, "/here"); status != 0 || stdout != "elsewhere" || stderr != "" {
		t.Errorf("status %d, %q, %q", status, stdout, stderr)
	}
}

func TestUsageErrorsOfSubcommands(t *testing.T) {
	for args, want := range map[string]string{
		"healthcheck now":                                   "error: Couldn't find match for argument: now\n",
		"get --token x /":                                   "error: Couldn't find match for argument: --token; did you mean --token-file?\n",
		"healthcheck --adress x":                            "error: Couldn't find match for argument: --adress; did you mean --address?\n",
		"healthcheck --timeout x":                           "error: Couldn't read argument value: --timeout: ",
		"healthcheck --address 127.0.0.1":                   "error: address '127.0.0.1' is not http://host:port, https://host:port or unix:PATH\n",
		"healthcheck --address ftp://127.0.0.1:1":           "error: address 'ftp://127.0.0.1:1' is not http://host:port, https://host:port or unix:PATH\n",
		"get -X PUT /stats":                                 "error: method 'PUT' is not GET or POST\n",
		"healthcheck --address http://a/b":                  "error: address 'http://a/b' is not http://host:port\n",
		"healthcheck --address http://a@b:1":                "error: address '…@b:1' has a user name: want --token-file for credentials\n",
		"get --address http://a:secret@b:1 /":               "error: address '…@b:1' has a user name: want --token-file for credentials\n",
		"get --address a:secret@b:1 /":                      "error: address '…@b:1' has a user name: want --token-file for credentials\n",
		"healthcheck --address unix:":                       "error: address 'unix:' has no path\n",
		"healthcheck --ca x":                                "error: --ca, --cert and --key need an address that begins with https://\n",
		"healthcheck --address https://127.0.0.1:1 --key x": "error: --cert and --key must be used together\n",
		"bundle a b":                                        "error: Couldn't find match for argument: b\n",
		"bundle --cpu 31s":                                  "error: --cpu 31s is not in [0s, 30s]\n",
		"get":                                               "error: get needs a path, such as /stats\n",
		"get /a /b":                                         "error: Couldn't find match for argument: /b\n",
		"get /%zz":                                          "error: parse ",
		"convert":                                           "error: convert needs --from gostatsd, statsd, telegraf or brubeck\n",
		"convert --from statsd_exporter x":                  "error: statsd_exporter needs no conversion: its flags and its mapping file work unchanged\n",
		"convert --from statsd":                             "error: convert needs a file or -\n",
		"convert --from graphite x":                         "error: unknown program 'graphite': want gostatsd, statsd, telegraf or brubeck\n",
		"convert --from statsd /nowhere":                    "error: open /nowhere: ",
		"convert --from statsd -":                           "stdin:1:1: want an object in braces\n",
		"convert --from statsd a b":                         "error: Couldn't find match for argument: b\n",
		"lint":                                              "error: lint needs a URL, a file or -\n",
		"lint a b":                                          "error: Couldn't find match for argument: b\n",
		"lint - --format 2":                                 "error: unknown format '2': want 0.0.4, 1.0.0 or openmetrics\n",
		"lint http:///x":                                    "error: address 'http://' is not http://host:port\n",
		"lint unix:":                                        "error: address 'unix:' has no path\n",
		"lint /nowhere":                                     "error: open /nowhere: ",
		"top x":                                             "error: Couldn't find match for argument: x\n",
		"top --sort size":                                   "error: unknown column 'size': want one of name, type, value, rate, change, changed\n",
		"top --interval 30.001s":                            "error: interval 30.001s is not between 1s and 30s\n",
		"top --interval 30s --address x":                    "error: address 'x' is not http://host:port",
		"top --interval 10ms":                               "error: interval 10ms is not between 1s and 30s\n",
		"top --address x":                                   "error: address 'x' is not http://host:port",
		"send --address 127.0.0.1:8125":                     "error: address '127.0.0.1:8125' is not udp://host:port",
		"send --address udp:127.0.0.1:8125":                 "error: address 'udp:127.0.0.1:8125' has no location\n",
		"send --address unixgram:":                          "error: address 'unixgram:' has no location\n",
		"send --ca x":                                       "error: --ca, --cert and --key need an address that begins with tls://\n",
		"send --key x":                                      "error: --ca, --cert and --key need an address that begins with tls://\n",
		"send --address tls://127.0.0.1:1 --cert x":         "error: --cert and --key must be used together\n",
		"send --packet-bytes -1":                            "error: Couldn't read argument value: --packet-bytes: ",
	} {
		status, stdout, stderr := invoke(strings.NewReader(""), strings.Fields(args)...)
		if status != 2 || stdout != "" || !strings.HasPrefix(stderr, want) {
			t.Errorf("%s: status %d, %q, %q; want %q", args, status, stdout, stderr, want)
		}
	}
}

// TestEmptyArguments passes arguments that are variables without a value in scripts.
func TestEmptyArguments(t *testing.T) {
	for _, tt := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"lint", ""}, 2, "error: lint needs a URL, a file or -\n"},
		{[]string{"man", ""}, 2, "error: Couldn't find match for argument: ''\n"},
		{[]string{""}, 1, "error: Couldn't find match for argument: ''\n"},
	} {
		if status, stdout, stderr := invoke(strings.NewReader(""), tt.args...); status != tt.status || stdout != "" || stderr != tt.want {
			t.Errorf("%q: status %d, %q, %q; want %d, %q", tt.args, status, stdout, stderr, tt.status, tt.want)
		}
	}
}

// TestClientOfAServer runs healthcheck and get against real servers, over TCP,
// TLS and a unix socket.
func TestClientOfAServer(t *testing.T) {
	dir := shortDir(t)
	cert, key := selfSigned(t, dir)
	const token = "0123456789abcdefghijkl"
	tokenFile, wrongToken, twoTokens := write(t, "token", token+"\n"), write(t, "wrong", strings.Repeat("x", 22)), write(t, "two", "a\nb\n")
	auth := fmt.Sprintf("auth: {tokens: [{name: a, role: read, sha256: %x}], open_paths: [/ready]}", sha256.Sum256([]byte(token)))
	tcp := "http://" + running(t, "admin: {"+onLoopback+"}").Admin().Addr().String()
	secured := "http://" + running(t, "admin: {"+onLoopback+", "+auth+"}").Admin().Addr().String()
	tls := "https://" + running(t, "admin: {"+onLoopback+", tls: {certificate_chain: "+cert+", private_key: "+key+", client_ca: "+cert+"}}").Admin().Addr().String()
	running(t, "admin: {address: {pipe: {path: "+dir+"/s}}}")
	const live = "LIVE\n"
	for args, want := range map[string]struct {
		status         int
		stdout, stderr string // the latter: a part
	}{
		"healthcheck --address " + tcp:                                                          {},
		"healthcheck --address unix:" + dir + "/s":                                              {},
		"healthcheck --address unix://" + dir + "/s":                                            {},
		"healthcheck --address " + secured:                                                      {},
		"healthcheck --address unix:" + dir + "/no":                                             {1, "", "no such file or directory"},
		"healthcheck --address " + strings.Replace(tls, "https", "http", 1):                     {1, "", "error: not ready: 400 "},
		"get /ready --address " + tcp:                                                           {0, live, ""},
		"get /ready --address unix:" + dir + "/s":                                               {0, live, ""},
		"get /ready -a " + tcp[strings.LastIndex(tcp, ":"):]:                                    {0, live, ""},
		"get --address " + tcp + " /stats?filter=^server.live$":                                 {0, "server.live: 1\n", ""},
		"get stats?filter=^server.live$ -a " + strings.TrimPrefix(tcp, "http://"):               {0, "server.live: 1\n", ""},
		"get -X POST /reset_counters --address " + tcp:                                          {0, "OK\n", ""},
		"get /reset_counters --address " + tcp:                                                  {1, "", "error: GET /reset_counters: 400 "},
		"get /nowhere --address " + tcp:                                                         {1, "", "error: GET /nowhere: 404 Not Found: there is no such path; statsd-admin get /help lists all\n"},
		"get -X POST /healthcheck/fial --address " + tcp:                                        {1, "", "error: POST /healthcheck/fial: 404 Not Found: there is no such path; did you mean /healthcheck/fail?\n"},
		"get /tap --address " + tcp:                                                             {1, "", "error: GET /tap: 404 Not Found: the tap is off; admin.tap: {} turns it on\n"},
		"get /stats --address " + secured:                                                       {1, "", "error: GET /stats: 401 "},
		"get /stats --address " + secured + " --token-file " + wrongToken:                       {1, "", "error: GET /stats: 401 "},
		"get /stats --address " + secured + " --token-file " + twoTokens:                        {1, "", "does not contain exactly one token"},
		"get /stats --address " + secured + " --token-file /nowhere":                            {1, "", "no such file or directory"},
		"get /stats?filter=^server.live$ --address " + secured + " --token-file " + tokenFile:   {0, "server.live: 1\n", ""},
		"get /ready --address " + tls + " --ca " + cert + " --cert " + cert + " --key " + key:   {0, live, ""},
		"top --once --address " + secured:                                                       {1, "", "error: 401 "},
		"top --once --address " + secured + " --filter ^server.live$ --token-file " + tokenFile: {0, "name\ttype\tvalue\tper_sec\tchange\tp50\tp90\tp99\nserver.live\tgauge\t1\t0\t0\t\t\t\n", ""},
		"top --once --address unix:" + dir + "/s --filter (":                                    {1, "", "error: 400 "},
		"get /ready --address " + tls + " --ca " + cert:                                         {1, "", "certificate required"},
		"get /ready --address " + tls:                                                           {1, "", "x509: "},
		"get /ready --address " + tls + " --ca " + key:                                          {1, "", "has no certificate in PEM form"},
	} {
		status, stdout, stderr := invoke(nil, strings.Fields(args)...)
		if status != want.status || stdout != want.stdout || !strings.Contains(stderr, want.stderr) || (stderr == "") != (status == 0) {
			t.Errorf("%s: status %d, %q, %q; want %+v", args, status, stdout, stderr, want)
		}
	}
}

// TestHealthcheckOfAServerThatIsNotReady checks the status of a server that fails its
// health checks, and of a server that does not answer.
func TestHealthcheckOfAServerThatIsNotReady(t *testing.T) {
	d := running(t, "admin: {"+onLoopback+"}")
	if reply := d.Admin().Request("POST", "/healthcheck/fail", nil); reply.Status != 200 {
		t.Fatalf("%d %s", reply.Status, reply.Body)
	}
	status, _, stderr := invoke(nil, "healthcheck", "--address", "http://"+d.Admin().Addr().String())
	if want := "error: not ready: 503 Service Unavailable: DRAINING\n"; status != 1 || stderr != want {
		t.Errorf("status %d, %q, want %q", status, stderr, want)
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	status, _, stderr = invoke(nil, "healthcheck", "--timeout", "20ms", "--address", "http://"+silent.Addr().String())
	if status != 1 || !strings.Contains(stderr, "Client.Timeout") {
		t.Errorf("a silent server: status %d, %q", status, stderr)
	}
}

func TestGetReportsFailures(t *testing.T) {
	d := running(t, "admin: {"+onLoopback+"}")
	var stderr bytes.Buffer
	p := program{stdout: failing{}, stderr: &stderr}
	status := p.run(context.Background(), []string{"get", "/ready", "--address", "http://" + d.Admin().Addr().String()})
	if status != 1 || stderr.String() != "error: disk is full\n" {
		t.Errorf("status %d, %q", status, stderr.String())
	}
}

// TestClientErrors expects one line for an answer without a body, and for files that
// hold no certificates.
func TestClientErrors(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(503) }))
	defer s.Close()
	if status, _, stderr := invoke(nil, "get", "--address", s.URL, "/x"); status != 1 || !strings.Contains(stderr, "503 Service Unavailable\n") {
		t.Errorf("%d %q", status, stderr)
	}
	text := write(t, "text", "text")
	for _, tt := range []struct{ flags, want string }{
		{"--ca /none", "error: open /none: no such file or directory\n"},
		{"--ca " + text, "error: " + text + " has no certificate in PEM form\n"},
		{"--cert /none --key " + text, "error: open /none: no such file or directory\n"},
		{"--cert " + text + " --key " + text, "error: tls: failed to find any PEM data in certificate input\n"},
	} {
		if status, _, stderr := invoke(nil, append([]string{"get", "--address", "https://127.0.0.1:1", "/"}, strings.Fields(tt.flags)...)...); status != 1 || stderr != tt.want {
			t.Errorf("%s: %d %q, want %q", tt.flags, status, stderr, tt.want)
		}
	}
}

// TestSwitchedProtocolIsAnError: no time limit would end the connection that follows.
func TestSwitchedProtocolIsAnError(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Upgrade", "x")
		w.WriteHeader(http.StatusSwitchingProtocols)
	}))
	defer s.Close()
	if status, _, stderr := invoke(nil, "get", "--address", s.URL, "/x"); status != 1 || stderr != "error: GET /x: the server answers 101 Switching Protocols, which was not asked for\n" {
		t.Errorf("status %d, %q", status, stderr)
	}
}

// full is an output without space.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space") }

// TestFullOutputIsAnError expects commands to report that their output is cut.
func TestFullOutputIsAnError(t *testing.T) {
	for _, tt := range []struct {
		args, stdin string
		status      int
	}{
		{"--help", "", exitFailed}, {"--version", "", exitFailed}, {"--mode validate", "", exitFailed}, {"get --help", "", exitFailed},
		{"man", "", exitFailed}, {"completion bash", "", exitFailed}, {"lint -", "a 1\n", exitUsage}, {"explain -", "a:1|c\n", exitFailed},
		{"convert --from brubeck -", "{}", exitUsage},
	} {
		var stderr bytes.Buffer
		p := program{stdin: strings.NewReader(tt.stdin), stdout: full{}, stderr: &stderr, hardware: 2}
		if status := p.run(t.Context(), strings.Fields(tt.args)); status != tt.status || stderr.String() != "error: no space\n" {
			t.Errorf("%s: status %d, %q", tt.args, status, &stderr)
		}
	}
}
