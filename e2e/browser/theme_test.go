package browser

import (
	"bytes"
	"fmt"
	"image/png"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/statsd-admin/statsd-admin/e2e/daemon"
)

// frame is what the browser painted at a moment: the color at the edge of the page.
type frame struct {
	at    float64 // seconds since the epoch
	color string
}

// TestFirstFrame chooses another theme than the system's, and opens pages whose
// second half does not arrive until a frame is painted: scripts that do not block the
// parser would be late. No frame has the color of the other theme.
func TestFirstFrame(t *testing.T) {
	t.Parallel()
	to, err := url.Parse(base(start(t)))
	if err != nil {
		t.Fatal(err)
	}
	var painted atomic.Value // chan struct{}: second halves wait until it is closed
	all := make(chan struct{})
	close(all)
	painted.Store(all)
	proxy := httputil.NewSingleHostReverseProxy(to)
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Del("accept-encoding")
		answer := httptest.NewRecorder()
		proxy.ServeHTTP(answer, r)
		maps.Copy(w.Header(), answer.Header())
		w.WriteHeader(answer.Code)
		body := answer.Body.Bytes()
		if strings.HasPrefix(answer.Header().Get("content-type"), "text/html") {
			half := bytes.Index(body, []byte("<main"))
			_, _ = w.Write(body[:half]) // a page that is left does not read it
			_ = http.NewResponseController(w).Flush()
			select {
			case <-painted.Load().(chan struct{}):
			case <-r.Context().Done():
				return
			}
			body = body[half:]
		}
		_, _ = w.Write(body)
	}))
	t.Cleanup(func() { slow.CloseClientConnections(); slow.Close() })

	p := open(t)
	var mu sync.Mutex
	var frames []frame
	since := func(at float64) (list []string) {
		mu.Lock()
		defer mu.Unlock()
		for _, f := range frames {
			if f.at > at {
				list = append(list, f.color)
			}
		}
		return list
	}
	p.must("listening", chromedp.Listen(p.Context, func(ev any) {
		f, ok := ev.(*page.EventScreencastFrame)
		if !ok {
			return
		}
		picture, err := png.Decode(bytes.NewReader(f.Data))
		if err != nil {
			t.Errorf("a frame: %v", err)
			return
		}
		r, g, b, _ := picture.At(1, picture.Bounds().Max.Y/2).RGBA()
		mu.Lock()
		frames = append(frames, frame{f.Metadata.Timestamp.Float64(), fmt.Sprintf("#%02x%02x%02x", r>>8, g>>8, b>>8)})
		mu.Unlock()
		go func() { // the listener must not wait
			_, _ = chromedp.Call(p, page.ScreencastFrameAck, page.ScreencastFrameAckParams{SessionID: f.SessionID})
		}()
	}))
	_, err = chromedp.Call(p, page.StartScreencast, page.StartScreencastParams{Format: page.StartScreencastFormatPng})
	p.must("the frames", err)
	for _, theme := range []struct{ chosen, system, color string }{{"dark", "light", "#0b0e13"}, {"light", "dark", "#f6f7f9"}} {
		p.medium(1280, 1, scheme, theme.system)
		p.ready(slow.URL + "/ui/server")
		p.press(`input[name="theme"][value="` + theme.chosen + `"]`)
		for _, path := range []string{"/ui/logging", "/"} {
			frame := make(chan struct{})
			painted.Store(frame)
			p.do(chromedp.Evaluate[chromedp.Void]("location.href = " + quoted(path)))
			p.until("location.pathname === " + quoted(path) + " && performance.getEntriesByType('paint').length > 0")
			created := eval[float64](p, "performance.timing.domLoading / 1000")
			daemon.Until(t, "a frame", func() bool { return len(since(created)) > 0 })
			if eval[bool](p, "'ready' in document.documentElement.dataset") {
				t.Errorf("%s: the scripts ran before the second half arrived", path)
			}
			close(frame)
			p.until("document.documentElement.dataset.ready")
			for i, color := range since(created) {
				if color != theme.color {
					t.Errorf("%s in %s with a %s system: frame %d has %s at its edge, want %s", path, theme.chosen, theme.system, i, color, theme.color)
				}
			}
		}
	}
}
