package statsd

import (
	"strings"
	"testing"
)

func TestTap(t *testing.T) {
	var got []string
	asked, on := 0, false
	r := newRig(t, Config{Tap: func() func(Tapped) {
		asked++
		if !on {
			return nil
		}
		return func(l Tapped) { got = append(got, l.Listener+" "+l.Sender+" "+string(l.Line)) }
	}})
	r.send("a:1|c\nb:1|c\n")
	on = true
	r.send("a:2|c\nbad\n\n_e{1,1}:x|y\r\n_sc|up|0")
	on = false
	r.send("a:3|c")
	if want := "test tester a:2|c, test tester _e{1,1}:x|y, test tester _sc|up|0"; strings.Join(got, ", ") != want {
		t.Errorf("got %q, want %s", got, want)
	}
	if asked != 3 {
		t.Errorf("asked %d times in 3 batches", asked)
	}
}
