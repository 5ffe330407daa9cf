package admin_test

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync/atomic"

	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/store"
)

// A program adds an endpoint and sends requests without a socket.
func Example() {
	st := store.New(store.Options{})
	st.Scope("edge").Counter("restarts").Inc()

	srv, err := admin.New(admin.Config{Store: st})
	if err != nil {
		log.Fatal(err)
	}
	err = srv.Handle(admin.Endpoint{
		Path: "/greet", Help: "say hello",
		Params: []admin.Param{{Name: "name", Help: "to whom"}},
		Serve: func(w *admin.Response, r *admin.Request) error {
			_, err := fmt.Fprintf(w, "hello %s\n", r.Query().Value("name"))
			return err
		},
	})
	if err != nil {
		log.Fatal(err)
	}

	fmt.Printf("%s", srv.Request("GET", "/greet?name=you", nil).Body)
	fmt.Printf("%s", srv.Request("GET", "/stats?filter=^edge", nil).Body)
	fmt.Printf("%d\n", srv.Request("GET", "/reset_counters", nil).Status)
	// Output:
	// hello you
	// edge.restarts: 1
	// 400
}

// An endpoint that changes a setting, for clients with a role. The audit log has each
// change; it can be tried with dry_run, limited with ttl, and undone.
func ExampleSettings() {
	ops, err := admin.NewToken("ops", admin.RoleOperate, "at least 22 random bytes")
	if err != nil {
		log.Fatal(err)
	}
	srv, err := admin.New(admin.Config{Auth: &admin.Auth{Tokens: admin.NewTokens(ops)}})
	if err != nil {
		log.Fatal(err)
	}
	var limit atomic.Int64
	err = srv.Handle(admin.Endpoint{
		Path: "/limit", Help: "change the limit", Mutates: true, Role: admin.RoleOperate, DryRun: true,
		Params: []admin.Param{{Name: "to", Help: "new limit"}},
		Settings: &admin.Settings{
			Name:   "limit",
			Values: func() map[string]string { return map[string]string{"limit": fmt.Sprint(limit.Load())} },
			Restore: func(values map[string]string) error {
				n, err := strconv.ParseInt(values["limit"], 10, 64)
				if err == nil {
					limit.Store(n)
				}
				return err
			},
		},
		Serve: func(w *admin.Response, r *admin.Request) error {
			n, err := strconv.ParseInt(r.Query().Value("to"), 10, 64)
			if err != nil {
				return &admin.Error{Status: 400, Msg: "usage: /limit?to=N\n"}
			}
			if r.DryRun() {
				r.Changed("limit", fmt.Sprint(limit.Load()), fmt.Sprint(n))
				return nil
			}
			limit.Store(n) // the server compares the Values before and after, and records the change
			_, err = fmt.Fprintf(w, "set by %s\n", r.Principal().Name)
			return err
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	token := admin.Field{Name: "authorization", Value: "Bearer at least 22 random bytes"}
	for _, target := range []string{"/limit?to=5&dry_run", "/limit?to=5", "/limit?to=8&ttl=10m", "/audit/undo?id=3"} {
		fmt.Printf("%s", srv.Request("POST", target, nil, token).Body)
	}
	undo, temporary := srv.Audit(2)[0], srv.Audit(2)[1]
	fmt.Println(limit.Load(), undo.Principal.Name, temporary.Changes)
	// Output:
	// dry run: nothing was changed
	// limit: 0 -> 5
	// set by ops
	// set by ops
	// OK
	// 5 ops [{limit 5 8}]
}

func ExampleServer_ServeHTTP() {
	srv, err := admin.New(admin.Config{Store: store.New(store.Options{Product: "shop"})})
	if err != nil {
		fmt.Println(err)
		return
	}
	mux := http.NewServeMux()
	mux.Handle("/admin/", http.StripPrefix("/admin", srv))

	rec := httptest.NewRecorder()
	mux.ServeHTTP(rec, httptest.NewRequest("GET", "http://localhost/admin/ready", nil))
	fmt.Print(rec.Code, " ", rec.Body)
	// Output: 200 LIVE
}
