package httptransport_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"time"

	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/upstream"
	"github.com/statsd-admin/statsd-admin/upstream/config/decode"
	"github.com/statsd-admin/statsd-admin/upstream/httptransport"
)

// A reverse proxy is net/http with a transport to a cluster.
func Example() {
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "hello from the backend")
	}))
	defer backend.Close()
	st, pools := store.New(store.Options{}), new(httptransport.Pools)
	clusters := upstream.New(upstream.Config{Store: st, Hooks: pools.Hooks(upstream.Hooks{})})
	defer clusters.Close()
	defer pools.Drain(nil, nil)
	parsed, err := decode.Static{
		Name: "backend", Hosts: []string{backend.Listener.Addr().String()}, EjectAfter: 5,
		Check: &decode.StaticCheck{Path: "/", Interval: 2 * time.Second},
	}.Cluster()
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := clusters.AddStatic(parsed); err != nil {
		fmt.Println(err)
		return
	}
	clusters.Start()
	<-clusters.Ready() // the host has been checked
	proxy := httptest.NewServer(&httputil.ReverseProxy{
		Transport: &httptransport.Transport{
			Pools:   pools,
			Cluster: func() *upstream.Handle { return clusters.Cluster("backend") },
			Retries: 2,
		},
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = "http", r.In.Host
			r.SetXForwarded()
		},
		ErrorHandler: httptransport.HandleError,
	})
	defer proxy.Close()

	resp, err := http.Get(proxy.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	body, _ := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	fmt.Print(string(body))
	fmt.Println("upstream_rq_total:", st.Scope("cluster.backend").Counter("upstream_rq_total").Value())
	// Output:
	// hello from the backend
	// upstream_rq_total: 1
}
