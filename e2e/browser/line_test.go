package browser

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
)

// drawnLine is a line as the page has drawn it, and its table.
type drawnLine struct {
	From, To float64      // milliseconds
	Steps    [][2]float64 // percent at the end of a step, height in pixels
	Tall     float64      // of the highest step
	Axis     [][2]float64 // labels, and their heights in pixels
	Table    []float64    // oldest first
	Labels   string       // of the axis of values
}

const drawsLine = `(() => {
  const plot = document.getElementById('plot');
  const base = Number(plot.querySelector('line.base').getAttribute('y1'));
  let y = 0;
  const steps = [];
  for (const [, command, a, b] of plot.querySelector('path.ln').getAttribute('d').matchAll(/([MVH])([\d.]+)(?: ([\d.]+))?/g)) {
    if (command === 'H') {
      steps.push([Number(a), base - y]);
    } else {
      y = Number(command === 'M' ? b : a);
    }
  }
  return {From: Number(plot.dataset.from), To: Number(plot.dataset.to), Steps: steps, Tall: Math.max(...steps.map(([, y]) => y)),
    Axis: [...plot.previousElementSibling.querySelectorAll('text')].map((e) => [Number(e.textContent), base + 4 - Number(e.getAttribute('y'))]),
    Table: [...document.querySelectorAll('#points tbody tr')].map((row) => Number(row.cells[2].dataset.value)).reverse(),
    Labels: [plot.querySelector('text'), ...plot.previousElementSibling.querySelectorAll('text')].map((e) => e.textContent).join(' ')};
})()`

// TestStatLine compares the line of a counter and its table with the history of the
// API, and zooms with the mouse, with keys and with links. Another stat can be beside it.
func TestStatLine(t *testing.T) {
	t.Parallel()
	s, random := newShelf(t), random(t)
	c, g := s.store.Root().Counter("line.count"), s.store.Root().Gauge("line.level")
	for range 60 {
		c.Add(uint64(random.IntN(50)))
		g.Set(uint64(random.IntN(9)))
		s.flush()
	}
	points := func() (rates, ends []float64) {
		t.Helper()
		resp, err := http.Get(s.URL + "/stats/history?name=line.count")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		var in struct{ Points [][4]float64 }
		if err != nil || json.Unmarshal(text, &in) != nil {
			t.Fatalf("%v %s", err, text)
		}
		for _, p := range in.Points {
			ends, rates = append(ends, p[0]), append(rates, p[3])
		}
		return rates, ends
	}
	p := open(t)
	p.ready(s.URL + "/ui/stat?name=line.count")
	p.until("document.documentElement.dataset.line")
	check := func() drawnLine {
		t.Helper()
		got := eval[drawnLine](p, drawsLine)
		rates, ends := points()
		top, n := 0.0, 0
		// The API has no point of the flush before the counter was created, the line has a 0.
		if created := (ends[0] - 5000 - got.From) / (got.To - got.From) * 100; created > .1 && len(got.Steps) > 0 && math.Abs(got.Steps[0][0]-created) < .1 && got.Table[0] == 0 {
			got.Steps, got.Table = got.Steps[1:], got.Table[1:]
		}
		for i, end := range ends {
			if end > got.From && end-5000 < got.To {
				top = max(top, rates[i])
			}
		}
		for i, end := range ends {
			if end <= got.From || end-5000 >= got.To {
				continue
			}
			if n >= len(got.Steps) || n >= len(got.Table) {
				t.Fatalf("%d steps and %d rows are too few", len(got.Steps), len(got.Table))
			}
			at := min((end-got.From)/(got.To-got.From), 1) * 100
			if x := got.Steps[n]; math.Abs(x[0]-at) > .1 || math.Abs(x[1]-rates[i]/top*got.Tall) > 1 || math.Abs(got.Table[n]-rates[i]) > .001 {
				t.Errorf("step %d is at %v with %v in the table; the API has %v at %.1f %%", n, x, got.Table[n], rates[i], at)
			}
			n++
		}
		if n != len(got.Steps) || n != len(got.Table) || n == 0 {
			t.Errorf("%d steps and %d rows for %d points", len(got.Steps), len(got.Table), n)
		}
		for _, x := range got.Axis {
			if math.Abs(x[1]-x[0]/top*got.Tall) > 1 || math.Mod(x[0]*10, 1) != 0 {
				t.Errorf("the axis has %v at %.1f of %.1f for %v", x[0], x[1], got.Tall, top)
			}
		}
		if len(got.Axis) < 3 || got.Tall < 170 || !strings.HasPrefix(got.Labels, "per second 0 ") || !strings.Contains(eval[string](p, "document.getElementById('plot').textContent"), " ago") {
			t.Errorf("the axes are labelled %q", got.Labels)
		}
		return got
	}
	all := check()
	changed := func(before drawnLine) drawnLine {
		t.Helper()
		p.until(fmt.Sprintf("document.getElementById('plot').dataset.from + document.getElementById('plot').dataset.to !== '%.0f%.0f' && !document.querySelector('[aria-busy]')", before.From, before.To))
		return check()
	}
	// From a quarter of the width to the middle.
	p.do(chromedp.Evaluate[chromedp.Void]("document.getElementById('plot').scrollIntoView({block: 'center'})"))
	box := eval[[]float64](p, "(() => { const b = document.getElementById('plot').getBoundingClientRect(); return [b.left, b.top + 60, b.width]; })()")
	mouse := func(kind input.DispatchMouseEventType, share float64) {
		t.Helper()
		_, err := chromedp.Call(p, input.DispatchMouseEvent, input.DispatchMouseEventParams{Type: kind, X: box[0] + box[2]*share, Y: box[1], Button: input.MouseButtonLeft, Buttons: 1, ClickCount: 1})
		p.must("the mouse", err)
	}
	mouse("mousePressed", .25)
	mouse("mouseMoved", .4)
	mouse("mouseMoved", .5)
	mouse("mouseReleased", .5)
	part := changed(all)
	width := all.To - all.From
	if math.Abs(part.From-all.From-width/4) > width/50 || math.Abs(part.To-all.From-width/2) > width/50 {
		t.Errorf("a drag over a quarter of %.0f to %.0f shows %.0f to %.0f", all.From, all.To, part.From, part.To)
	}
	for _, key := range []struct {
		key  string
		want func(before, now drawnLine) bool
	}{
		{"+", func(a, b drawnLine) bool {
			return math.Abs((b.To-b.From)*2-(a.To-a.From)) < 10 && b.From > a.From && b.To < a.To
		}},
		{"-", func(a, b drawnLine) bool { return math.Abs((b.To-b.From)-2*(a.To-a.From)) < 10 }},
		{"ArrowLeft", func(a, b drawnLine) bool { return b.To < a.To && b.From < a.From }},
		{"ArrowRight", func(a, b drawnLine) bool { return b.To > a.To && b.From > a.From }},
		{"0", func(a, b drawnLine) bool { return b.To == float64(s.now.UnixMilli()) && b.From <= all.To-295_000 }},
	} {
		// The driver has no names for these keys.
		if !eval[bool](p, "document.activeElement.id === 'plot'") {
			t.Errorf("before %s the focus is not on the plot", key.key)
		}
		p.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf("document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key: %q, bubbles: true}))", key.key)))
		now := changed(part)
		if !key.want(part, now) {
			t.Errorf("%s leads from %.0f, %.0f to %.0f, %.0f", key.key, part.From, part.To, now.From, now.To)
		}
		part = now
	}
	p.do(chromedp.Evaluate[chromedp.Void]("setTimeout(() => history.back())"))
	part = changed(part)
	address := eval[string](p, "location.href")
	p.ready(address)
	p.until("document.documentElement.dataset.line")
	if again := check(); again.From != part.From || again.To != part.To {
		t.Errorf("the address shows %.0f to %.0f instead of %.0f to %.0f", again.From, again.To, part.From, part.To)
	}
	p.press(`#line [data-k="over-"]`)
	p.until("!location.search.includes('from') && !document.querySelector('[aria-busy]')")
	// The present is drawn when the page refreshes, unless the plot is in use.
	p.do(chromedp.Evaluate[chromedp.Void](`{ document.activeElement.blur(); const s = document.querySelector('#refresh'); s.value = '1'; s.dispatchEvent(new Event('change')); }`))
	s.flush()
	p.until(fmt.Sprintf("document.getElementById('plot').dataset.to === '%d'", s.now.UnixMilli()))

	p.do(chromedp.SendKeys(`input[name="with"]`, "line.level\r"))
	p.until("document.documentElement.dataset.line && document.querySelectorAll('#plot path').length === 2")
	if got := eval[string](p, "[...document.querySelectorAll('#points thead th')].map((e) => e.textContent).join() + document.querySelector('#line .legend').innerText"); !strings.Contains(got, "Per second,line.level, value") || strings.Count(got, "line.level") != 2 {
		t.Errorf("beside another stat the page has %q", got)
	}
	p.ready(s.URL + "/ui/stat?name=line.count&with=absent")
	if got := eval[string](p, "document.querySelector('#with-error').textContent"); got != "not a counter or gauge" {
		t.Errorf("an absent stat: %q", got)
	}
}
