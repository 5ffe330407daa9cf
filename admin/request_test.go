package admin

import (
	"fmt"
	"testing"
)

// TestRequestAccessors expects handlers of a program to see what the client sent.
func TestRequestAccessors(t *testing.T) {
	s := newServer(t, Config{})
	var got string
	err := s.Handle(Endpoint{Path: "/own", Params: []Param{{Name: "x"}}, Serve: func(w *Response, r *Request) error {
		w.SetHeader("x-one", "1")
		w.SetHeader("x-two", "2")
		w.SetHeader("x-one", "3")
		w.WriteString("body")
		got = fmt.Sprint(r.Method(), " ", r.Path(), " ", r.Target(), " ", r.Base(), " ", r.Peer(), " ", r.Principal().Role)
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	r := s.Request("GET", "/own?x=1", nil)
	if want := "GET /own /own?x=1 http://localhost  admin"; got != want || r.Get("x-one") != "3" || r.Get("x-two") != "2" || r.Get("content-length") != "4" {
		t.Errorf("%q, want %q; %v", got, want, r.Header)
	}
	secure := &Request{tls: true, host: "a", prefix: "/p"}
	if secure.Base() != "https://localhost/p" {
		t.Error(secure.Base())
	}
	if text := Role(77).String(); text != "Role(77)" {
		t.Error(text)
	}
	if err := s.Handle(Endpoint{Path: "/own"}); err == nil {
		t.Error("a path is taken twice")
	}
}
