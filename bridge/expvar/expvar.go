// Package expvar connects a store with the variables of the standard library's package
// expvar, in both directions.
//
//	expvar.Publish("stats", bridge.Var{Store: st})    // the stats among the variables
//	in := bridge.NewImporter(st.Scope("expvar"))      // the variables among the stats
//	flush.Config{Store: st, Before: []func(time.Time){in.Refresh}}
//
// It is a separate module because importing expvar registers a handler with
// http.DefaultServeMux.
package expvar

import (
	"bytes"
	"encoding/json"
	"expvar"
	"math"
	"strings"
	"time"

	"github.com/statsd-admin/statsd-admin/render"
	"github.com/statsd-admin/statsd-admin/store"
)

// Var is the stats of a store as one variable, in the JSON form of /stats?format=json.
// It is safe for concurrent use.
type Var struct {
	Store   *store.Store
	Options render.Options
}

var _ expvar.Var = Var{}

// String implements [expvar.Var]. If the options cannot be rendered, it returns a JSON
// object with the error.
func (v Var) String() string {
	var out bytes.Buffer
	if err := render.JSON(&out, v.Store, v.Options); err != nil {
		text, _ := json.Marshal(map[string]string{"error": err.Error()}) // cannot fail
		return string(text)
	}
	return out.String()
}

// Importer copies the published variables into a scope of a store. Numbers and booleans
// become gauges, other texts become text readouts. Members of objects get the path as
// their name, joined by dots: memstats.HeapAlloc. Arrays are left out. An Importer is
// safe for concurrent use.
type Importer struct{ to *store.Scope }

// NewImporter returns an importer. Nothing is copied before the first
// [Importer.Refresh].
func NewImporter(to *store.Scope) *Importer { return &Importer{to} }

// Refresh copies the current values. Its signature is that of the elements of
// flush.Config.Before, so that each flush has fresh values. Variables that show the
// stats of a store are left out.
func (im *Importer) Refresh(time.Time) {
	expvar.Do(func(kv expvar.KeyValue) {
		if _, ours := kv.Value.(Var); ours {
			return
		}
		dec := json.NewDecoder(strings.NewReader(kv.Value.String()))
		dec.UseNumber()
		var value any
		if dec.Decode(&value) == nil {
			im.copy(kv.Key, value)
		}
	})
}

func (im *Importer) copy(name string, value any) {
	switch value := value.(type) {
	case json.Number:
		if x, err := value.Float64(); err == nil && !math.IsInf(x, 0) {
			_ = im.to.FloatGauge(name).Set(x) // finite, so it cannot fail
		}
	case bool:
		x := 0.0
		if value {
			x = 1
		}
		_ = im.to.FloatGauge(name).Set(x)
	case string:
		im.to.Text(name).Set(value)
	case map[string]any:
		for key, member := range value {
			im.copy(name+"."+key, member)
		}
	}
}
