package expvar

import (
	"bytes"
	"encoding/json"
	"expvar"
	"strings"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/render"
	"github.com/statsd-admin/statsd-admin/store"
)

// TestVar reads the stats of a store as a variable.
func TestVar(t *testing.T) {
	st := store.New(store.Options{})
	st.Scope("app").Counter("requests").Add(3)
	var got struct {
		Stats []struct {
			Name  string
			Value int
		}
	}
	text := Var{Store: st, Options: render.Options{UsedOnly: true, Type: render.Counters}}.String()
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	if len(got.Stats) != 1 || got.Stats[0].Name != "app.requests" || got.Stats[0].Value != 3 {
		t.Errorf("got %+v", got)
	}
}

// TestVarShowsErrors: a filter over its budget leaves valid JSON.
func TestVarShowsErrors(t *testing.T) {
	st := store.New(store.Options{})
	now := time.Unix(0, 0)
	filter, err := render.NewFilter(render.ECMAScript, "(?=a)b", render.FilterLimits{
		Budget: time.Nanosecond, Now: func() time.Time { now = now.Add(time.Hour); return now },
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		st.Scope("app").Counter("requests" + now.String()).Inc()
		now = now.Add(1)
	}
	var got map[string]any
	text := Var{Store: st, Options: render.Options{Filter: filter}}.String()
	if err := json.Unmarshal([]byte(text), &got); err != nil || got["error"] == nil {
		t.Errorf("%v in %s", err, text)
	}
}

// TestImporter copies variables of all kinds, twice.
func TestImporter(t *testing.T) {
	st := store.New(store.Options{})
	jobs, nested := expvar.NewInt("jobs"), expvar.NewMap("pool")
	expvar.NewString("release").Set("1.2")
	expvar.Publish("own", Var{Store: st})
	expvar.Publish("mixed", expvar.Func(func() any {
		return map[string]any{"ok": true, "off": false, "list": []int{1, 2}, "none": nil, "huge": json.Number("1e999")}
	}))
	expvar.Publish("broken", broken{})
	im := NewImporter(st.Scope("expvar"))
	jobs.Set(4)
	im.Refresh(time.Time{})
	jobs.Set(-5)
	nested.AddFloat("load", 1.5)
	im.Refresh(time.Time{})

	var out bytes.Buffer
	if err := render.Text(&out, st, render.Options{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"expvar.jobs: -5\n", "expvar.pool.load: 1.5\n", `expvar.release: "1.2"` + "\n",
		"expvar.mixed.ok: 1\n", "expvar.mixed.off: 0\n", "expvar.memstats.HeapAlloc: ",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, out.String())
		}
	}
	for _, unwanted := range []string{"expvar.own", "mixed.list", "mixed.none", "mixed.huge", "broken"} {
		if strings.Contains(out.String(), unwanted) {
			t.Errorf("%q is in\n%s", unwanted, out.String())
		}
	}
}

// broken is a variable whose text is not JSON.
type broken struct{}

func (broken) String() string { return "{" }
