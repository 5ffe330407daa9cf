package browser

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"slices"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/statsd-admin/statsd-admin/store"
)

// drawn is the picture of a histogram as the browser has laid it out.
type drawn struct {
	N      int         // bins across the axis
	Bars   [][2]int    // bin, and height in hundredths of a pixel
	Steps  []float64   // heights of the outline in pixels
	Tall   float64     // height of the plot in pixels
	Table  [][]float64 // exact values of the buckets below it
	Labels []string    // of the quantiles that are seen
	Touch  []string    // pairs of labels that touch, labels outside of the plot
}

// draws reads the picture.
const draws = `(() => {
  const plot = document.querySelector('svg.plot[data-bins]');
  const floor = Number(plot.querySelector('line.base').getAttribute('y1'));
  const box = plot.getBoundingClientRect();
  const steps = [...plot.querySelector('path.step').getAttribute('d').matchAll(/[ML][\d.]+ ([\d.]+)H/g)].map((m) => floor - Number(m[1]));
  const bars = [...plot.querySelectorAll('rect.f')].map((e) => {
    const b = e.getBoundingClientRect();
    return [Math.floor((b.left + b.width / 2 - box.left) / box.width * steps.length), Math.round(b.height * 100)];
  });
  const labels = [...plot.querySelectorAll('text.mark')].filter((e) => e.getBoundingClientRect().width > 0);
  const touch = [];
  labels.forEach((a, i) => {
    const p = a.getBoundingClientRect();
    if (p.left < box.left - 1 || p.right > box.right + 1) {
      touch.push(a.textContent + ' is outside');
    }
    for (const b of labels.slice(0, i)) {
      const q = b.getBoundingClientRect();
      if (p.left < q.right && q.left < p.right && p.top < q.bottom - 1 && q.top < p.bottom - 1) {
        touch.push(a.textContent + ' touches ' + b.textContent);
      }
    }
  });
  return {N: steps.length, Bars: bars, Steps: steps, Tall: Number(plot.querySelector('.bin').getAttribute('height')),
    Table: [...document.querySelectorAll('#bins tbody tr')].map((row) => [...row.cells].map((c) => Number(c.dataset.value))), Labels: labels.map((e) => e.textContent), Touch: touch};
})()`

// counted is an answer of /stats/histogram.
type counted struct {
	Count    uint64
	Min, Max float64
	Bins     [][3]float64
}

func (s *shelf) histogram(t *testing.T, name, scope string) (c counted) {
	t.Helper()
	resp, err := http.Get(s.URL + "/stats/histogram?bins&name=" + url.QueryEscape(name) + scope)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("%s: %d %v %s", name, resp.StatusCode, err, text)
	}
	var in struct {
		counted
		Min, Max *float64 // null without values
	}
	if err := json.Unmarshal(text, &in); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	if c = in.counted; in.Min != nil {
		c.Min, c.Max = *in.Min, *in.Max
	}
	return c
}

// spread distributes the bins of an answer over n bins of equal width of the axis of
// another one. edge reports bins with a neighbor that a rounding decides about.
func (c *counted) spread(all *counted, log bool, n int) (list []float64, edge []bool) {
	list, edge = make([]float64, n), make([]bool, n)
	low, high := all.Min, all.Max
	if low == high {
		pad := math.Max(low/10, .5)
		low, high = low-pad, high+pad
	}
	log = log && low > 0
	for _, b := range c.Bins {
		x := min(max(b[0]+b[1]/2, c.Min), c.Max)
		share := (x - low) / (high - low)
		if log {
			share = math.Log(x/low) / math.Log(high/low)
		}
		at := min(max(share, 0), 1) * float64(n)
		i := min(int(at), n-1)
		list[i] += b[2]
		if math.Abs(at-math.Round(at)) < 1e-6 {
			edge[i], edge[max(i-1, 0)], edge[min(i+1, n-1)] = true, true, true
		}
	}
	return list, edge
}

// TestHistogramPlots draws 200 random distributions, in all forms and in two widths,
// and expects the bars, the outline and the table to have the counts of the API,
// and labels that do not touch.
func TestHistogramPlots(t *testing.T) {
	t.Parallel()
	const shapes = 200
	s, random := newShelf(t), random(t)
	var hists []*store.Histogram
	for i := range shapes {
		hists = append(hists, s.store.Root().Histogram(fmt.Sprintf("shape.%03d", i), store.Milliseconds))
		shaped(hists[i], random)
	}
	s.flush()
	for i := range shapes {
		if i%7 > 0 { // some have no values in the interval
			shaped(hists[i], random)
		}
	}
	s.flush()
	p := open(t)
	p.size(1280, "light")
	p.ready(s.URL + "/ui/histograms")
	labels, bars := 0, 0
	for i := range shapes {
		name := fmt.Sprintf("shape.%03d", i)
		log, shares := i%2 == 0, i%3 > 0
		if i == shapes/2 {
			p.size(390, "light")
		}
		p.refill(fmt.Sprintf("histograms?name=%s&x=%s&y=%s", name, []string{"linear", "log"}[(i+1)%2], map[bool]string{true: "share", false: "count"}[shares]))
		got := eval[drawn](p, draws)
		if len(got.Touch) > 0 || len(got.Labels) < 1 {
			t.Errorf("%s: of the labels %q, %q", name, got.Labels, got.Touch)
		}
		labels += len(got.Labels)
		interval, all := s.histogram(t, name, "&scope=interval"), s.histogram(t, name, "")
		inBars, edges := interval.spread(&all, log, got.N)
		inSteps, edges2 := all.spread(&all, log, got.N)
		if slices.Contains(edges, true) || slices.Contains(edges2, true) {
			continue // a rounding decides which of two bins has a value, and with it the scale
		}
		height := func(n float64, total uint64) float64 {
			if shares {
				return n / float64(max(total, 1))
			}
			return n
		}
		top := 0.0
		for b := range got.N {
			top = max(top, height(inBars[b], interval.Count), height(inSteps[b], all.Count))
		}
		heights := map[int]float64{}
		for _, b := range got.Bars {
			heights[b[0]] = float64(b[1]) / 100
		}
		bars += len(heights)
		table := got.Table
		for b := range got.N {
			if edges[b] || edges2[b] {
				table = nil // a rounding decides about two bins
				continue
			}
			want := height(inBars[b], interval.Count) / top * got.Tall
			if d := heights[b] - want; math.Abs(d) > 1 {
				t.Errorf("%s: bar %d of %d has %.2f pixels, want %.2f", name, b, got.N, heights[b], want)
			}
			want = height(inSteps[b], all.Count) / top * got.Tall
			if d := got.Steps[b] - want; math.Abs(d) > 1 {
				t.Errorf("%s: the outline at %d of %d has %.2f pixels, want %.2f", name, b, got.N, got.Steps[b], want)
			}
			if inBars[b]+inSteps[b] > 0 && len(table) > 0 {
				if row := table[0]; row[2] != inBars[b] || row[4] != inSteps[b] || math.Abs(row[3]-100*inBars[b]/float64(max(interval.Count, 1))) > .01 {
					t.Errorf("%s: bucket %d is %v, the API has %v and %v", name, b, row, inBars[b], inSteps[b])
				}
				table = table[1:]
			}
		}
	}
	t.Logf("%d bars and %d labels", bars, labels)
	if bars < shapes || labels < 2*shapes {
		t.Errorf("only %d bars and %d labels", bars, labels)
	}
}

// TestHistogramWalk walks over all buckets with the keys, and expects each row of the
// table to be read out. A histogram without values says so.
func TestHistogramWalk(t *testing.T) {
	t.Parallel()
	s, random := newShelf(t), random(t)
	hist := s.store.Root().Histogram("walked", store.Milliseconds)
	for range 3 {
		shaped(hist, random)
	}
	s.store.Root().Histogram("idle", store.Milliseconds)
	s.flush()
	p := open(t)
	p.ready(s.URL + "/ui/histograms?name=walked")
	p.press("#bins-table > summary")
	p.do(chromedp.Focus("svg.plot[data-bins]"))
	const read = `document.querySelector('#bin').textContent + ' | ' + [...document.querySelectorAll('.bin')].findIndex((e) => e.matches('.sel')) + [...document.querySelectorAll('#bins tbody tr')].findIndex((e) => e.matches('.sel'))`
	row := func(i int) string {
		return eval[string](p, fmt.Sprintf(`[...document.querySelectorAll('#bins tbody tr')][%d].innerText.trim().split(/\s*\t\s*/).map((x, i) => document.querySelectorAll('#bins thead th')[i].textContent + ' ' + x).join(', ') + ' | %d%d'`, i, i, i))
	}
	p.key(kb.End)
	last := int(eval[float64](p, "document.querySelectorAll('#bins tbody tr').length")) - 1
	if got, want := eval[string](p, read), row(last); got != want {
		t.Errorf("End reads %q, want %q", got, want)
	}
	p.key(kb.Home)
	for i := range last + 1 {
		if got, want := eval[string](p, read), row(i); got != want {
			t.Errorf("bucket %d reads %q, want %q", i, got, want)
		}
		p.key(kb.ArrowRight)
	}
	p.key(kb.ArrowLeft)
	if got, want := eval[string](p, read), row(max(last-1, 0)); got != want {
		t.Errorf("back from the end it reads %q, want %q", got, want)
	}
	if got := eval[string](p, "document.querySelector('#bin').getAttribute('aria-live') + document.querySelector('svg.plot[data-bins]').role"); got != "politeimg" {
		t.Errorf("the words are %q", got)
	}
	for _, page := range []string{"/ui/histograms?name=idle", "/ui/stat?name=idle"} {
		p.ready(s.URL + page)
		if got := eval[string](p, "document.querySelector('section:has(#histogram) .empty').textContent"); got != "No recorded values" {
			t.Errorf("%s says %q", page, got)
		}
	}
}
