package terminal

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/e2e/daemon"
	"github.com/statsd-admin/statsd-admin/e2e/need"
)

// pane is a terminal of tmux.
type pane struct {
	t       *testing.T
	program string
	socket  string
}

// tmux runs a command of tmux and returns its output.
func (p *pane) tmux(args ...string) string {
	p.t.Helper()
	out, err := exec.Command(p.program, append([]string{"-u", "-f", "/dev/null", "-S", p.socket}, args...)...).CombinedOutput()
	if err != nil {
		p.t.Fatalf("tmux %q: %v\n%s", args, err, out)
	}
	return string(out)
}

// open runs a script of sh in a new terminal of 80 columns and 24 lines.
func open(t *testing.T, dir, script string) *pane {
	t.Helper()
	p := &pane{t, need.Program(t, "tmux"), filepath.Join(dir, "tmux")}
	file := filepath.Join(dir, "script")
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	p.tmux("new-session", "-d", "-x", "80", "-y", "24", "sh "+file)
	t.Cleanup(func() { _ = exec.Command(p.program, "-S", p.socket, "kill-server").Run() })
	return p
}

// screen returns the lines that the terminal shows.
func (p *pane) screen() string { return p.tmux("capture-pane", "-p") }

// shows waits until the screen is as wanted and returns it.
func (p *pane) shows(what string, ok func(screen string) bool) string {
	p.t.Helper()
	last := ""
	defer func() {
		if p.t.Failed() {
			p.t.Logf("the screen is\n%s", last)
		}
	}()
	daemon.Until(p.t, what, func() bool { last = p.screen(); return ok(last) })
	return last
}

// row returns the fields of the row of a stat, or nil.
func row(screen, name string) []string {
	for line := range strings.Lines(screen) {
		fields := strings.Fields(strings.TrimPrefix(line, ">"))
		if len(fields) > 2 && fields[0] == name {
			return fields
		}
	}
	return nil
}

// TestTop uses the screen as a person does.
func TestTop(t *testing.T) {
	d := daemon.Start(t, daemon.Config{})
	send := func(line string) {
		t.Helper()
		c, err := net.Dial("udp", d.Address("udp"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := fmt.Fprint(c, line); err != nil {
			t.Fatal(err)
		}
	}
	send("shop.orders:1|c\nshop.depth:40|g\nshop.time:3:4:90|ms")
	d.Wait("the stats", func(s daemon.Stats) bool { return s["shop.orders"] == "1" && s["shop.depth"] == "40" })
	p := open(t, d.Dir, fmt.Sprintf("stty -g >%[1]s/before\nLANG=C.UTF-8 %[2]s top -a http://%[3]s -f '^shop'\necho status $?\nstty -g >%[1]s/after\necho over\nread -r line\n",
		d.Dir, need.Binary(t), d.Admin))

	p.shows("the stats", func(s string) bool { return row(s, "shop.orders") != nil && strings.Contains(s, "filter ^shop") })
	send("shop.orders:1|c")
	p.shows("the number to move", func(s string) bool { r := row(s, "shop.orders"); return r != nil && r[2] == "2" })

	p.tmux("send-keys", "3")
	p.shows("the greatest value first", func(s string) bool {
		return strings.Contains(s, "VALUEv") && strings.Index(s, "shop.depth") < strings.Index(s, "shop.orders")
	})
	p.tmux("send-keys", "3")
	p.shows("the least value first", func(s string) bool {
		return strings.Contains(s, "VALUE^") && strings.Index(s, "shop.depth") > strings.Index(s, "shop.orders")
	})

	p.tmux("resize-window", "-x", "120", "-y", "30")
	p.shows("the new size", func(s string) bool {
		lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
		return len(lines) == 30 && strings.HasPrefix(lines[29], "q quit") && strings.HasSuffix(strings.TrimRight(lines[1], " "), "CHANGED") && len(strings.TrimRight(lines[1], " ")) > 80
	})

	p.tmux("set-option", "-s", "set-clipboard", "on")
	p.tmux("send-keys", "g", "h", "c")
	p.shows("the histograms alone", func(s string) bool { return strings.Contains(s, " 1 histograms") && row(s, "shop.orders") == nil })
	daemon.Until(t, "the clipboard", func() bool { return strings.Contains(p.tmux("list-buffers"), "bytes") })
	if got := p.tmux("show-buffer"); got != "shop.time\thistogram\t3" {
		t.Errorf("%q was copied", got)
	}
	p.tmux("send-keys", "g", "s", "Space")
	p.shows("a pinned stat", func(s string) bool { return strings.Contains(s, ">*shop.") })
	p.tmux("send-keys", "Space")
	p.tmux("send-keys", "/", "C-u", "^shop.time$", "Enter")
	p.shows("one stat", func(s string) bool { return strings.Contains(s, " 1 stats") && row(s, "shop.orders") == nil })
	p.tmux("send-keys", "Enter")
	p.shows("the distribution", func(s string) bool {
		return strings.Contains(s, "3 values from 3 ms to 90 ms, buckets in milliseconds") && strings.Contains(s, "█")
	})
	p.tmux("send-keys", "g", "c")
	p.shows("the clusters", func(s string) bool { return strings.Contains(s, "No clusters are configured") })
	p.tmux("send-keys", "g", "s", "/", "C-u", "(", "Enter")
	p.shows("the error of the server", func(s string) bool { return strings.Contains(s, "400 Bad Request") })
	p.tmux("send-keys", "q")
	p.shows("the end", func(s string) bool { return strings.Contains(s, "status 0\nover\n") })
	before, err := os.ReadFile(filepath.Join(d.Dir, "before"))
	if err != nil {
		t.Fatal(err)
	}
	if after, err := os.ReadFile(filepath.Join(d.Dir, "after")); err != nil || string(after) != string(before) {
		t.Errorf("the terminal is not as before: %s%s%v", before, after, err)
	}
}

// TestTopInAPipe: without a terminal there are tables, and no escape sequences.
func TestTopInAPipe(t *testing.T) {
	d := daemon.Start(t, daemon.Config{})
	out, err := exec.Command(need.Binary(t), "top", "-a", "http://"+d.Admin, "--once", "--filter", "^server.(live|uptime)$", "--sort", "name").CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "name\ttype\tvalue\tper_sec\tchange\tp50\tp90\tp99\nserver.live\tgauge\t1\t") || strings.Contains(string(out), "\x1b") || strings.Count(string(out), "\n") != 3 {
		t.Errorf("%v: %q", err, out)
	}
}
