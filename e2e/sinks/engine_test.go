package sinks

import (
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	remoteapi "github.com/prometheus/client_golang/exp/api/remote"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/otlptranslator"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage/remote"
	"github.com/prometheus/prometheus/tsdb"
)

// engine is Prometheus' own receivers for remote write 2.0 and OTLP in front of its
// database, and its query engine.
type engine struct {
	t      *testing.T
	url    string
	db     *tsdb.DB
	engine *promql.Engine
}

func newEngine(t *testing.T) *engine {
	t.Helper()
	opts := tsdb.DefaultOptions()
	opts.EnableSTAsZeroSample = true
	log := promslog.NewNopLogger()
	db, err := tsdb.Open(t.TempDir(), log, nil, opts, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	otlp := func() config.Config {
		c := config.DefaultConfig
		c.OTLPConfig.TranslationStrategy = otlptranslator.NoTranslation
		return c
	}
	mux := http.NewServeMux()
	mux.Handle("/api/v1/write", remote.NewWriteHandler(log, prometheus.NewRegistry(), db,
		remoteapi.MessageTypes{remoteapi.WriteV1MessageType, remoteapi.WriteV2MessageType}, true, false, false))
	mux.Handle("/api/v1/otlp/v1/metrics", remote.NewOTLPWriteHandler(log, prometheus.NewRegistry(), db, otlp, remote.OTLPOptions{}))
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	return &engine{t, srv.URL, db, promql.NewEngine(promql.EngineOpts{
		MaxSamples: 1e7, Timeout: time.Minute, Parser: parser.NewParser(parser.Options{}),
	})}
}

// point is the value of a series: of a histogram, its count and sum.
type point struct {
	value, count, sum float64
}

// near reports whether p and q are equal, sums up to rounding.
func (p point) near(q point) bool {
	return p.value == q.value && p.count == q.count && math.Abs(p.sum-q.sum) <= 1e-9*math.Abs(q.sum)
}

// query returns the result of an instant query by labels other than job and instance.
func (e *engine) query(promQL string) map[string]point {
	e.t.Helper()
	q, err := e.engine.NewInstantQuery(e.t.Context(), e.db, nil, promQL, time.Now())
	if err != nil {
		e.t.Fatalf("%s: %v", promQL, err)
	}
	defer q.Close()
	vector, err := q.Exec(e.t.Context()).Vector()
	if err != nil {
		e.t.Fatalf("%s: %v", promQL, err)
	}
	result := map[string]point{}
	for _, s := range vector {
		p := point{value: s.F}
		if s.H != nil {
			p = point{count: s.H.Count, sum: s.H.Sum}
		}
		result[labels.NewBuilder(s.Metric).Del("job", "instance").Labels().String()] = p
	}
	return result
}

// difference returns the first lines of what differs, and "" if nothing does.
func difference(got, want map[string]point) (text string) {
	n := 0
	note := func(format string, args ...any) {
		if n++; n <= 10 {
			text += fmt.Sprintf(format, args...)
		}
	}
	for series, w := range want {
		if g, ok := got[series]; !ok {
			note("%s is missing, want %v\n", series, w)
		} else if !g.near(w) {
			note("%s is %v, want %v\n", series, g, w)
		}
	}
	for series, g := range got {
		if _, ok := want[series]; !ok {
			note("%s is %v, want none\n", series, g)
		}
	}
	return text
}
