package healthlistener_test

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/statsd-admin/statsd-admin/server/healthlistener"
)

func ExampleListener() {
	l, err := healthlistener.New(healthlistener.Config{
		Name: "health", Address: "127.0.0.1:0",
		State: func() (string, bool) { return "LIVE", true },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := l.Listen(); err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	done := make(chan error)
	go func() { done <- l.Run(ctx) }()

	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get("http://" + l.Addr().String() + "/")
	if err != nil {
		fmt.Println(err)
		return
	}
	body, _ := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	fmt.Printf("%d %s", resp.StatusCode, body)
	stop()
	fmt.Println(<-done)
	// Output:
	// 200 LIVE
	// <nil>
}
