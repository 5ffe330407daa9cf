package envoyapi

import (
	"strconv"

	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/server"
	"github.com/statsd-admin/statsd-admin/server/tap"
	"github.com/statsd-admin/statsd-admin/statsd"
	"github.com/statsd-admin/statsd-admin/store"
)

// The source IDs for requests to /tap.
const (
	tapStatsD = "statsd" // accepted lines
	tapAdmin  = "admin"  // requests to the admin port
)

// AddTap adds /tap to a server, with accepted StatsD lines and admin requests as
// sources. A proxy adds its own sources to the returned tap.
func AddTap(cfg *server.Config) *tap.Tap {
	if cfg.Store == nil {
		cfg.Store = store.New(store.Options{})
	}
	t := tap.New(tap.Config{Dropped: cfg.Store.Own().Counter("tap.traces_dropped")})
	if cfg.StatsD != nil {
		source, input := t.Register(tapStatsD), *cfg.StatsD
		input.Tap = func() func(statsd.Tapped) {
			session := source.Session()
			if session == nil {
				return nil
			}
			return func(l statsd.Tapped) {
				session.Socket(tap.Read{Local: l.Local, Remote: l.Sender, Data: l.Line})
			}
		}
		cfg.StatsD = &input
	}
	source, next := t.Register(tapAdmin), cfg.Admin.AccessLog
	cfg.Admin.AccessLog = func(a admin.Access) {
		if session := source.Session(); session != nil {
			session.HTTP(exchangeOf(&a))
		}
		if next != nil {
			next(a)
		}
	}
	cfg.Endpoints = append(cfg.Endpoints, admin.Endpoint{
		Path: "/tap", Group: "Clusters and listeners", Help: "stream the traffic selected by the request body", Mutates: true, Fixed: true, TakesBody: true,
		Params: []admin.Param{{Name: "config", Help: "selection as YAML or JSON, as an alternative to the body", Kind: admin.ParamLines}},
		Serve: func(w *admin.Response, r *admin.Request) error {
			body := r.Body()
			if text := r.Query().Value("config"); text != "" {
				body = []byte(text)
			}
			session, err := t.Attach(body)
			if err != nil {
				return &admin.Error{Status: 400, Msg: err.Error()}
			}
			defer session.Close()
			return session.Serve(w, w.Endless())
		},
	})
	return t
}

// exchangeOf returns the trace of a request. Fields that can hold secrets are left
// out.
func exchangeOf(a *admin.Access) tap.Exchange {
	x := tap.Exchange{
		Time: a.Time, Remote: a.Peer,
		Request:  []tap.Field{{Name: ":method", Value: a.Method}, {Name: ":path", Value: a.Target}, {Name: ":authority", Value: a.Host}},
		Response: []tap.Field{{Name: ":status", Value: strconv.Itoa(a.Status)}},
	}
	add := func(to *[]tap.Field, name string, get func(string) string) {
		if get == nil {
			return
		}
		if v := get(name); v != "" {
			*to = append(*to, tap.Field{Name: name, Value: v})
		}
	}
	for _, name := range []string{"user-agent", "accept", "content-type", "content-length"} {
		add(&x.Request, name, a.RequestHeader)
	}
	for _, name := range []string{"content-type", "content-encoding"} {
		add(&x.Response, name, a.ResponseHeader)
	}
	return x
}
