package store_test

import (
	"fmt"
	"os"
	"time"

	"github.com/statsd-admin/statsd-admin/render"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

func Example() {
	st := store.New(store.Options{})
	in := st.Scope("http.ingress")
	total, active := in.Counter("downstream_rq_total"), in.Gauge("downstream_rq_active") // once
	for range 3 {
		active.Inc()
		total.Inc()
		active.Dec()
	}
	if err := render.Text(os.Stdout, st, render.Options{}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// http.ingress.downstream_rq_active: 0
	// http.ingress.downstream_rq_total: 3
}

// The default tag rules make a tag of one token of the scope's prefix.
func ExampleScope_Scope() {
	st := store.New(store.Options{})
	st.Root().Scope("http.ingress").Counter("rq").Inc()
	st.Root().Scope("shop.cart").Counter("rq").Inc() // no rule applies
	if err := render.Exposition(os.Stdout, st, render.Options{}); err != nil {
		fmt.Println(err)
	}
	plain, err := tags.New(tags.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	st = store.New(store.Options{Tags: plain})
	st.Scope("http.ingress").Counter("rq").Inc()
	if err := render.Exposition(os.Stdout, st, render.Options{}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// # TYPE proxy_http_rq counter
	// proxy_http_rq{proxy_http_conn_manager_prefix="ingress"} 1
	// # TYPE proxy_shop_cart_rq counter
	// proxy_shop_cart_rq{} 1
	// # TYPE proxy_http_ingress_rq counter
	// proxy_http_ingress_rq{} 1
}

func ExampleScope_Counter() {
	st := store.New(store.Options{})
	st.Root().Counter("orders", tags.String("region", "eu")).Add(2)
	if err := render.Exposition(os.Stdout, st, render.Options{}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// # TYPE proxy_orders counter
	// proxy_orders{region="eu"} 2
}

func ExampleScope_TryCounter() {
	st := store.New(store.Options{Reject: func(name string) bool { return name == "noise" }})
	c, err := st.Root().TryCounter("noise")
	c.Inc() // has no effect
	fmt.Println(c.Value(), err)
	// Output: 0 store: "noise": rejected by the stats matcher
}

func ExampleScope_ScopeWith() {
	st := store.New(store.Options{})
	most := 1
	sc := st.ScopeWith("tenant", store.ScopeOptions{MaxCounters: &most})
	sc.Counter("a").Inc()
	sc.Counter("b").Inc() // beyond the limit
	fmt.Println(st.Root().Counter("server.stats_overflow.counter").Value())
	// Output: 1
}

func ExampleScope_Close() {
	st := store.New(store.Options{})
	sc := st.Scope("session")
	sc.Counter("bytes").Add(10)
	fmt.Println(st.Len(store.KindCounter))
	sc.Close()
	fmt.Println(st.Len(store.KindCounter))
	// Output:
	// 1
	// 0
}

func ExampleScope_GaugeFunc() {
	st := store.New(store.Options{})
	queue := make(chan int, 10)
	if err := st.Root().GaugeFunc("queue_length", func() float64 { return float64(len(queue)) }); err != nil {
		fmt.Println(err)
	}
	queue <- 1
	queue <- 2
	v := st.View()
	defer v.Close()
	c, _ := v.Find("queue_length")
	fmt.Println(c.Float())
	// Output: 2
}

func ExampleScope_Histogram() {
	st := store.New(store.Options{Product: "shop"})
	latency := st.Scope("http").Histogram("request_seconds", store.Seconds)
	latency.RecordDuration(40 * time.Millisecond)
	latency.RecordDuration(3 * time.Second)
	st.Flush(store.FlushOptions{}).Close() // a server flushes by itself
	if err := render.Exposition(os.Stdout, st, render.Options{}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// # TYPE shop_http_request_seconds histogram
	// shop_http_request_seconds_bucket{le="0.005"} 0
	// shop_http_request_seconds_bucket{le="0.01"} 0
	// shop_http_request_seconds_bucket{le="0.025"} 0
	// shop_http_request_seconds_bucket{le="0.05"} 1
	// shop_http_request_seconds_bucket{le="0.1"} 1
	// shop_http_request_seconds_bucket{le="0.25"} 1
	// shop_http_request_seconds_bucket{le="0.5"} 1
	// shop_http_request_seconds_bucket{le="1"} 1
	// shop_http_request_seconds_bucket{le="2.5"} 1
	// shop_http_request_seconds_bucket{le="5"} 2
	// shop_http_request_seconds_bucket{le="10"} 2
	// shop_http_request_seconds_bucket{le="+Inf"} 2
	// shop_http_request_seconds_sum{} 3.04
	// shop_http_request_seconds_count{} 2
}

func ExampleScope_WithHistograms() {
	st := store.New(store.Options{})
	seconds := &store.HistogramForm{Buckets: []float64{0.01, 0.1, 1}}
	sc := st.Scope("http").WithHistograms(seconds)
	sc.Describe("request_seconds", store.Description{Help: "Time to answer."})
	sc.Histogram("request_seconds", store.Seconds).RecordDuration(25 * time.Millisecond)
	st.Flush(store.FlushOptions{}).Close()
	if err := render.Exposition(os.Stdout, st, render.Options{}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// # HELP proxy_http_request_seconds Time to answer.
	// # TYPE proxy_http_request_seconds histogram
	// proxy_http_request_seconds_bucket{le="0.01"} 0
	// proxy_http_request_seconds_bucket{le="0.1"} 1
	// proxy_http_request_seconds_bucket{le="1"} 1
	// proxy_http_request_seconds_bucket{le="+Inf"} 1
	// proxy_http_request_seconds_sum{} 0.025
	// proxy_http_request_seconds_count{} 1
}

func ExampleStore_Describe() {
	st := store.New(store.Options{Product: "shop"})
	st.Describe("cart.size_bytes", store.Description{Help: "Size of all carts.", Unit: "bytes"})
	st.Root().Gauge("cart.size_bytes").Set(512)
	if err := render.OpenMetrics(os.Stdout, st, render.Options{}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// # HELP shop_cart_size_bytes Size of all carts.
	// # TYPE shop_cart_size_bytes gauge
	// # UNIT shop_cart_size_bytes bytes
	// shop_cart_size_bytes{} 512
	// # EOF
}

func ExampleStore_Flush() {
	st := store.New(store.Options{})
	c := st.Root().Counter("requests")
	for _, n := range []uint64{3, 4} {
		c.Add(n)
		snap := st.Flush(store.FlushOptions{})
		snap.CounterChanges(func(c *store.Cursor, delta uint64) bool {
			fmt.Println(c.Name(), delta, c.Uint())
			return true
		})
		snap.Close()
	}
	// Output:
	// requests 3 3
	// requests 4 7
}

func ExampleStore_Sweep() {
	now := time.Unix(1000, 0)
	st := store.New(store.Options{Now: func() time.Time { return now }})
	sc := st.ScopeWith("", store.ScopeOptions{TTL: store.TTL{Counter: time.Minute}})
	sc.Counter("old").Inc()
	st.Flush(store.FlushOptions{}).Close()
	st.Sweep(false)
	now = now.Add(2 * time.Minute)
	st.Sweep(false)
	fmt.Println(st.Len(store.KindCounter))
	// Output: 0
}

func ExampleStore_View() {
	st := store.New(store.Options{})
	st.Root().Counter("b").Inc()
	st.Root().Counter("a").Add(2)
	v := st.View()
	defer v.Close()
	for c := v.ByName(store.Scalars); c.Next(); {
		fmt.Println(c.Name(), c.Uint())
	}
	// Output:
	// a 2
	// b 1
}
