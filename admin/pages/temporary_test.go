package pages

import (
	"strings"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/admin"
)

// TestTemporarySettings checks that the pages show temporary settings with the time
// left, offer to undo a change, and say what a dry run would change.
func TestTemporarySettings(t *testing.T) {
	srv := world(t, "plain", nil)
	defer srv.Close()
	back := []admin.Field{{Name: "referer", Value: "http://localhost/ui/runtime"}, {Name: "accept", Value: "text/html"}}
	for _, target := range []string{"/runtime_modify?key=other&ttl=90s", "/logging?main=off&ttl=2h", "/healthcheck/fail"} {
		if r := srv.Request("POST", target, nil); r.Status != 200 {
			t.Fatalf("%s: %d %s", target, r.Status, r.Body)
		}
	}
	dry := srv.Request("POST", "/runtime_modify?key=third&dry_run=1", nil, back...)
	_, done, _ := strings.Cut(dry.Get("location"), "?")
	for target, wants := range map[string][]string{
		"runtime":         {" left, then "},
		"runtime?key=k":   {"<select name='ttl'>", "name='dry_run'"},
		"runtime?" + done: {"Nothing was changed. It would be: <code>/runtime_modify</code>: ", "third"},
		"logging":         {" left, then ", "at once and applies until changed."},
		"logging?ttl=1h":  {"<option value='1h' selected>", "at once and applies for an hour.", "<input type='hidden' name='ttl' value='1h'>"},
		"audit":           {"Temporary settings", "action='../audit/undo'", "<input type='hidden' name='id' value='2'>", " dry run"},
	} {
		r := request(srv, target, "plain")
		checkPage(t, srv, r.Body)
		for _, want := range wants {
			if r.Status != 200 || !strings.Contains(string(r.Body), want) {
				t.Errorf("%s: %d without %q", target, r.Status, want)
			}
		}
	}
	srv.Request("POST", "/audit/undo?id=2", nil)
	if r := request(srv, "audit", "plain"); !strings.Contains(string(r.Body), "undone by 5") || strings.Contains(string(r.Body), "name='id' value='2'") {
		t.Error("the page does not show that the change was undone")
	}
	list := request(srv, "audit?tsv=temporary", "plain")
	if got := string(list.Body); !strings.HasPrefix(got, "Setting\tValue\tThen\tTime left\tEntry\nkey\tother\t") || !strings.HasSuffix(got, "\t90\t1\n") {
		t.Errorf("as TSV: %q", got)
	}
	long := srv.Request("POST", "/runtime_modify?a=1&b=2&c=3&d=4&e=5&dry_run=1", nil, back...)
	_, five, _ := strings.Cut(long.Get("location"), "?")
	if r := request(srv, "runtime?"+five, "plain"); !strings.Contains(string(r.Body), ", and 2 more <a ") {
		t.Errorf("five changes: %s", r.Body)
	}
}

// TestTimeLeft rounds up to whole seconds.
func TestTimeLeft(t *testing.T) {
	v := view{now: testNow}
	for left, want := range map[time.Duration]time.Duration{-time.Hour: 0, -1: 0, 0: 0, 1: time.Second, time.Second: time.Second, time.Second + 1: 2 * time.Second, time.Minute - 1: time.Minute} {
		if got := v.remaining(&admin.Temporary{Until: testNow.Add(left)}); got != want {
			t.Errorf("%v: %v, want %v", left, got, want)
		}
	}
}
