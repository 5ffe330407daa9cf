package main

import (
	"io"
	"net/http"
	"testing"
)

// TestAnswersMeetRequests: a host may answer while its client still sends, and gets
// what the client sends later.
func TestAnswersMeetRequests(t *testing.T) {
	b := newBackend(t, "127.0.0.1:0")
	b.does(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		if err := control.EnableFullDuplex(); err != nil {
			t.Error(err)
		}
		word := make([]byte, 5)
		for range 2 {
			if _, err := io.ReadFull(r.Body, word); err != nil {
				t.Error(err)
				return
			}
			_, _ = w.Write(word)
			_ = control.Flush()
		}
	})
	r := start(t, static("", b), web(Route{}))
	body, words := io.Pipe()
	defer words.Close()
	go func() { _, _ = io.WriteString(words, "hello") }()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+r.address("web"), body)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := r.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	for _, want := range []string{"hello", "world"} {
		got := make([]byte, len(want))
		if _, err := io.ReadFull(resp.Body, got); err != nil || string(got) != want {
			t.Fatalf("got %q, %v; want %q", got, err, want)
		}
		go func() { _, _ = io.WriteString(words, "world") }() // the second one fails, at the end of the test
	}
	if rest, err := io.ReadAll(resp.Body); err != nil || len(rest) > 0 {
		t.Errorf("%q follows, %v", rest, err)
	}
}
