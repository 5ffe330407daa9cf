package browser

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/statsd-admin/statsd-admin/e2e/daemon"
	"github.com/statsd-admin/statsd-admin/e2e/need"
)

// All tests of the binary share one browser; each test has its own profile.
var browser struct {
	once   sync.Once
	ctx    context.Context
	err    error
	cancel func()
}

func TestMain(m *testing.M) {
	status := m.Run()
	if browser.cancel != nil {
		browser.cancel()
	}
	os.Exit(status)
}

// foreign is a host name that the browser resolves to this machine.
const foreign = "evil.test"

func launch(t *testing.T) context.Context {
	t.Helper()
	// The shell is the same engine without the interface of a desktop: half the processor time.
	path, err := exec.LookPath("chromium-headless-shell")
	if err != nil {
		path = need.Program(t, "chromium")
	}
	browser.once.Do(func() {
		dir, err := os.MkdirTemp("", "browser")
		if err != nil {
			browser.err = err
			return
		}
		options := append(chromedp.DefaultExecAllocatorOptions[:],
			chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(dir), chromedp.WindowSize(1200, 900),
			chromedp.WSURLReadTimeout(time.Minute),
			chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
			chromedp.Flag("host-resolver-rules", "MAP "+foreign+" 127.0.0.1, MAP *."+foreign+" 127.0.0.1"),
		)
		alloc, stopAlloc := chromedp.NewExecAllocator(context.Background(), options...)
		ctx, stop := chromedp.NewContext(alloc)
		browser.ctx, browser.err = ctx, chromedp.Do(ctx)
		browser.cancel = func() {
			_ = chromedp.Cancel(ctx) // the process ends either way
			stop()
			stopAlloc()
			_ = os.RemoveAll(dir)
		}
	})
	if browser.err != nil {
		t.Fatalf("the browser does not start: %v", browser.err)
	}
	return browser.ctx
}

// tab is a page in the browser with its errors.
type tab struct {
	context.Context
	t *testing.T

	mu       sync.Mutex
	errors   []string // of the console, exceptions, dialogs
	requests []string
	opened   map[string]bool // hosts whose pages the test opened
	provoked *regexp.Regexp  // errors that the test causes
}

// open opens an empty page in a new profile. The test fails if the page has errors,
// violates its policy or sends requests to a host that the test has not opened.
func open(t *testing.T) *tab {
	t.Helper()
	return openFor(t, 5*time.Minute)
}

// openFor is open with a limit on the time that the page may be used.
func openFor(t *testing.T, limit time.Duration) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(launch(t), chromedp.WithNewBrowserContext())
	ctx, stop := context.WithTimeout(ctx, limit)
	t.Cleanup(func() { stop(); cancel() })
	p := &tab{Context: ctx, t: t, opened: map[string]bool{}}
	t.Cleanup(func() {
		p.leave()
		p.clean()
	})
	p.must("listening", chromedp.Listen(ctx, func(ev any) {
		p.mu.Lock()
		defer p.mu.Unlock()
		switch ev := ev.(type) {
		case *network.EventRequestWillBeSent:
			p.requests = append(p.requests, ev.Request.URL)
		case *network.EventResponseReceived:
			if u, err := url.Parse(ev.Response.URL); err == nil && ev.Response.Status >= 400 && u.Path != "/favicon.ico" {
				p.errors = append(p.errors, fmt.Sprintf("status %d of %s", ev.Response.Status, ev.Response.URL))
			}
		case *page.EventJavascriptDialogOpening:
			p.errors = append(p.errors, "dialog: "+ev.Message)
		}
	}))
	go func() {
		for m, err := range chromedp.Console(ctx) {
			if err != nil {
				return
			}
			if strings.HasPrefix(m.Text, "Failed to load resource") {
				continue // the status says more; browsers look for an icon beside texts
			}
			switch m.Type {
			case chromedp.ConsoleError, chromedp.ConsoleException, chromedp.ConsoleWarning:
				p.mu.Lock()
				p.errors = append(p.errors, string(m.Type)+": "+m.Text)
				p.mu.Unlock()
			}
		}
	}()
	p.do(chromedp.Navigate("about:blank"))
	return p
}

// leave leaves the page. A navigation of the page itself that is under way can abort that.
func (p *tab) leave() {
	p.t.Helper()
	for end := time.Now().Add(daemon.Patience); ; time.Sleep(20 * time.Millisecond) {
		err := chromedp.Do(p, chromedp.Navigate("about:blank"))
		if err == nil {
			return
		}
		if p.Err() != nil || time.Now().After(end) {
			p.must("leaving the page", err)
		}
	}
}

func (p *tab) must(what string, err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatalf("%s: %v\nthe page complained of %q", what, err, p.complaints())
	}
}

// do runs actions in the page.
func (p *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	p.must("in the page", chromedp.Do(p, steps...))
}

// visit opens a page and waits until it and its scripts are loaded.
func (p *tab) visit(address string) {
	p.t.Helper()
	if u, err := url.Parse(address); err == nil {
		p.mu.Lock()
		p.opened[u.Host] = true
		p.mu.Unlock()
	}
	p.do(chromedp.Navigate(address))
}

// eval returns the value of an expression in the page; promises are awaited.
func eval[T any](p *tab, expression string) T {
	p.t.Helper()
	v, err := chromedp.Run(p, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	p.must(expression, err)
	return v
}

// until waits until an expression in the page is true.
func (p *tab) until(expression string) {
	p.t.Helper()
	for end := time.Now().Add(daemon.Patience); ; time.Sleep(20 * time.Millisecond) {
		ok, err := chromedp.Run(p, chromedp.Evaluate[bool]("!!("+expression+")"))
		if err == nil && ok {
			return
		}
		if time.Now().After(end) {
			p.t.Fatalf("waited %v for %s: %v\nthe page is %s\nit complained of %q", daemon.Patience, expression, err, p.text(), p.complaints())
		}
	}
}

// text returns the visible text of the page.
func (p *tab) text() string {
	p.t.Helper()
	return eval[string](p, "document.body.innerText")
}

// complaints returns the errors of the page so far.
func (p *tab) complaints() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.errors...)
}

// provoke says which errors the test causes: a pattern.
func (p *tab) provoke(pattern string) { p.provoked = regexp.MustCompile(pattern) }

// clean fails the test if the page had errors or sent requests to other servers.
func (p *tab) clean() {
	p.t.Helper()
	list := p.complaints()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.requests {
		if u, err := url.Parse(r); err != nil || !p.opened[u.Host] && u.Scheme != "data" && r != "about:blank" {
			list = append(list, "request for "+r)
		}
	}
	for _, flaw := range list {
		if p.provoked == nil || !p.provoked.MatchString(flaw) {
			p.t.Errorf("the page had the error %q", flaw)
		}
	}
}

// picture saves a screenshot if SCREENSHOTS names a directory.
func (p *tab) picture(name string) {
	p.t.Helper()
	dir := os.Getenv("SCREENSHOTS")
	if dir == "" {
		return
	}
	png, err := chromedp.Run(p, chromedp.FullScreenshot(100))
	p.must("screenshot", err)
	p.must("screenshot", os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644))
}

// key presses a key.
func (p *tab) key(keys string) {
	p.t.Helper()
	p.do(chromedp.KeyEvent(keys))
}

// press clicks the element of a selector.
func (p *tab) press(selector string) {
	p.t.Helper()
	p.do(chromedp.Click(selector))
}

// click clicks an element by script. The pointer would miss what moves, and wait for what
// is hidden.
func (p *tab) click(selector string) {
	p.t.Helper()
	p.do(chromedp.Evaluate[chromedp.Void]("document.querySelector(" + quoted(selector) + ").click()"))
}

// usual is a configuration with a cluster and StatsD listeners.
const usual = `
node: {id: node-17, cluster: edge}
admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}, profile_path: $DIR/profile}
stats_flush_interval: 0.2s
stats_sinks:
- name: proxy.stat_sinks.hystrix
  typed_config: {"@type": type.googleapis.com/envoy.config.metrics.v3.HystrixSink, num_buckets: 5}
static_resources:
  clusters:
  - name: backend
    connect_timeout: 1s
    type: STATIC
    load_assignment: {cluster_name: backend, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: 9}}}}]}]}
statsd:
  listeners:
  - {name: udp, address: "udp://127.0.0.1:0"}
  - {name: tcp, address: "tcp://127.0.0.1:0"}
`

// start starts a daemon with a cluster and stats of all kinds.
func start(t *testing.T) *daemon.Daemon {
	t.Helper()
	return daemon.Start(t, daemon.Config{YAML: usual})
}

// number returns a stat of a daemon.
func number(d *daemon.Daemon, name string) float64 { return d.Stats().Number(name) }

func base(d *daemon.Daemon) string { return "http://" + d.Admin }

// quoted returns text as a literal of a script.
func quoted(text string) string { return fmt.Sprintf("%q", strings.ReplaceAll(text, "\n", `\n`)) }
