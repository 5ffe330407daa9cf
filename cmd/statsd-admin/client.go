package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/statsd-admin/statsd-admin/internal/oneline"
	"github.com/statsd-admin/statsd-admin/internal/spelling"
)

const (
	defaultAdmin = "http://127.0.0.1:9901"
	maxFile      = 1 << 20 // bytes of a token or CA file
)

// client is a client of the administration interface.
type client struct {
	address, ca, cert, key, tokenFile string
	timeout                           time.Duration
	endless                           bool   // the body is a stream: the timeout is for each step before it
	accept                            string // media ranges; "" leaves the choice to the server
}

// newFlagSet returns an empty set of flags for a subcommand, or the program if name is "".
func newFlagSet(name string) *pflag.FlagSet {
	fs := pflag.NewFlagSet(strings.TrimSpace("statsd-admin "+name), pflag.ContinueOnError)
	fs.SortFlags = false
	return fs
}

func (c *client) flags(name string, timeout time.Duration) *pflag.FlagSet {
	fs := newFlagSet(name)
	fs.StringVarP(&c.address, "address", "a", defaultAdmin, "`URL` of the server: http://host:port, https://host:port, unix:PATH or unix:@NAME; host:port alone means http")
	c.accessFlags(fs, timeout)
	return fs
}

// accessFlags adds the flags of requests to any address, and --help.
func (c *client) accessFlags(fs *pflag.FlagSet, timeout time.Duration) {
	fs.StringVar(&c.tokenFile, "token-file", "", "`file` with the bearer token to send")
	fs.StringVar(&c.ca, "ca", "", "`file` with CA certificates, in PEM form; default: those of the system")
	fs.StringVar(&c.cert, "cert", "", "`file` of the client certificate, in PEM form; needs --key")
	fs.StringVar(&c.key, "key", "", "`file` of its private key, in PEM form")
	fs.DurationVar(&c.timeout, "timeout", timeout, "`time` limit of the request; 0s means none")
	helpFlag(fs)
}

// healthcheckCommand reports by its exit status whether a server is ready.
func (p *program) healthcheckCommand() *command {
	var c client
	return &command{
		name:    "healthcheck",
		summary: "exit with status 0 if a server is ready",
		details: "Requests /ready. The exit status is 0 if the status is 200, 1 if it is another or\n" +
			"there is no response in time, and 2 for a wrong command line.\n",
		flags: c.flags("healthcheck", 2*time.Second),
		run: func(ctx context.Context) error {
			resp, err := c.get(ctx, "/ready")
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				return fmt.Errorf("error: not ready: %s", responseError(resp))
			}
			return nil
		},
	}
}

// getCommand prints the response to a request.
func (p *program) getCommand() *command {
	var c client
	fs := c.flags("get", 30*time.Second)
	method := fs.StringP("method", "X", http.MethodGet, "`method` of the request: GET, or POST for paths that change the server")
	return &command{
		name:      "get",
		arguments: "path",
		most:      1,
		summary:   "print a response of the administration interface",
		details: "Requests a path of the administration interface, such as /stats?filter=^cluster,\n" +
			"and prints the body. The exit status is 0 if the response has a status below 400,\n" +
			"1 if it has another or there is none in time, and 2 for a wrong command line.\n",
		flags: fs,
		words: []string{"/certs", "/clusters", "/config_dump", "/help", "/listeners", "/logging", "/memory", "/metrics", "/ready", "/runtime", "/server_info", "/stats", "/stats/prometheus"},
		run:   func(ctx context.Context) error { return p.get(ctx, &c, *method, fs.Args()) },
	}
}

func (p *program) get(ctx context.Context, c *client, method string, args []string) error {
	if len(args) == 0 {
		return usageError{errors.New("error: get needs a path, such as /stats")}
	}
	if method != http.MethodGet && method != http.MethodPost {
		return usageError{fmt.Errorf("error: method '%s' is not GET or POST", method)}
	}
	path := "/" + strings.TrimPrefix(args[0], "/")
	resp, err := c.request(ctx, method, path)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 400 {
		return fmt.Errorf("error: %s %s: %s", method, path, responseError(resp))
	}
	_, err = io.Copy(p.stdout, resp.Body)
	return prefixed(err)
}

// get requests a path. The caller closes the body.
func (c *client) get(ctx context.Context, path string) (*http.Response, error) {
	return c.request(ctx, http.MethodGet, path)
}

// request sends a request without a body. The caller closes the body of the response.
func (c *client) request(ctx context.Context, method, path string) (*http.Response, error) {
	base, transport, err := c.transport()
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, method, base+path, nil)
	if err != nil {
		return nil, usageError{fmt.Errorf("error: %w", err)}
	}
	if c.tokenFile != "" {
		b, err := readFile(c.tokenFile, maxFile)
		if err != nil {
			return nil, err
		}
		token := strings.TrimSpace(string(b))
		if token == "" || strings.ContainsAny(token, " \t\r\n") {
			return nil, fmt.Errorf("error: %s does not contain exactly one token", c.tokenFile)
		}
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if c.accept != "" {
		req.Header.Set("Accept", c.accept)
	}
	h := http.Client{Transport: transport, Timeout: c.timeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if c.endless {
		h.Timeout, transport.TLSHandshakeTimeout, transport.ResponseHeaderTimeout = 0, c.timeout, c.timeout
	}
	resp, err := h.Do(req)
	if err != nil {
		return nil, fmt.Errorf("error: %w", err)
	}
	if resp.StatusCode == http.StatusSwitchingProtocols { // no time limit ends the connection that follows
		_ = resp.Body.Close()
		return nil, fmt.Errorf("error: %s %s: the server answers %s, which was not asked for", method, path, resp.Status)
	}
	return resp, nil
}

// transport returns the base URL and a transport for it. Proxies of the environment are
// not used.
func (c *client) transport() (base string, t *http.Transport, err error) {
	d := net.Dialer{Timeout: max(0, c.timeout)}
	t = &http.Transport{DisableKeepAlives: true}
	t.DialContext = d.DialContext
	scheme, rest, _ := strings.Cut(c.address, ":")
	if at := strings.LastIndexByte(c.address, '@'); at >= 0 && scheme != "unix" { // with a password, perhaps
		return "", nil, usageError{fmt.Errorf("error: address '…%s' has a user name: want --token-file for credentials", c.address[at:])}
	}
	switch scheme {
	case "http", "https":
		host := strings.TrimSuffix(strings.TrimPrefix(rest, "//"), "/")
		if !strings.HasPrefix(rest, "//") || host == "" || strings.ContainsAny(host, "/?#") {
			return "", nil, usageError{fmt.Errorf("error: address '%s' is not %s://host:port", c.address, scheme)}
		}
		base = scheme + "://" + host
	case "unix":
		path := strings.TrimPrefix(rest, "//")
		if path == "" {
			return "", nil, usageError{fmt.Errorf("error: address '%s' has no path", c.address)}
		}
		base = "http://localhost"
		t.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return d.DialContext(ctx, "unix", path)
		}
	default:
		if host, port, err := net.SplitHostPort(c.address); err == nil && port != "" && !strings.ContainsAny(host+port, "/?#") {
			base = "http://" + net.JoinHostPort(cmp.Or(host, "localhost"), port)
			break
		}
		return "", nil, usageError{fmt.Errorf("error: address '%s' is not http://host:port, https://host:port or unix:PATH", c.address)}
	}
	if scheme != "https" && cmp.Or(c.ca, c.cert, c.key) != "" {
		return "", nil, usageError{errors.New("error: --ca, --cert and --key need an address that begins with https://")}
	}
	t.TLSClientConfig, err = clientTLS(c.ca, c.cert, c.key)
	return base, t, err
}

// clientTLS returns the configuration for the given files. Each name can be empty.
func clientTLS(ca, cert, key string) (*tls.Config, error) {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if (cert == "") != (key == "") {
		return nil, usageError{errors.New("error: --cert and --key must be used together")}
	}
	if ca != "" {
		pem, err := readFile(ca, maxFile)
		if err != nil {
			return nil, err
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("error: %s has no certificate in PEM form", ca)
		}
	}
	if cert != "" {
		chain, err := readFile(cert, maxFile)
		if err != nil {
			return nil, err
		}
		private, err := readFile(key, maxFile)
		if err != nil {
			return nil, err
		}
		pair, err := tls.X509KeyPair(chain, private)
		if err != nil {
			return nil, fmt.Errorf("error: %w", err)
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	return cfg, nil
}

// readFile returns the content of a file of at most limit bytes, which can be a pipe.
func readFile(name string, limit int) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("error: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, int64(limit)+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("error: %w", err)
	case len(b) > limit:
		return nil, fmt.Errorf("error: %s has more than %d bytes", name, limit)
	}
	return b, nil
}

// noSuchPath describes an unknown path. It suggests a similar one from the server's help.
func noSuchPath(path, help string) string {
	near := spelling.Nearest(path, func(yield func(string) bool) {
		for line := range strings.Lines(help) {
			if name, _, ok := strings.Cut(strings.TrimPrefix(line, "  "), ":"); ok && strings.HasPrefix(name, "/") {
				if !yield(strings.TrimSuffix(name, " (POST)")) {
					return
				}
			}
		}
	}, len(path)/3)
	if near != "" {
		return "there is no such path; did you mean " + near + "?"
	}
	return "there is no such path; statsd-admin get /help lists all"
}

// responseError describes a response in one line: its status and the beginning of its body.
func responseError(r *http.Response) string {
	body, _ := io.ReadAll(io.LimitReader(r.Body, maxFile)) // best effort
	text := string(body)
	if help, ok := strings.CutPrefix(text, "invalid path. "); ok && r.StatusCode == http.StatusNotFound {
		return r.Status + ": " + noSuchPath(r.Request.URL.Path, help)
	}
	text = strings.TrimSpace(text[:min(len(text), shownBytes)])
	if text != "" {
		return r.Status + ": " + oneline.Escape(text)
	}
	return r.Status
}
