package bootstrap

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/statsd-admin/statsd-admin/server"
)

func TestHealthListeners(t *testing.T) {
	c, err := Parse("a.yaml", []byte(`health_listeners:
- address: {socket_address: {address: 0.0.0.0, port_value: 0}}
- {name: local, address: {pipe: {path: /run/h, mode: 0o666}}}
`), Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := []server.HealthListener{{Name: "health", Address: "0.0.0.0:0"}, {Name: "local", Address: "unix:/run/h", Mode: 0o666}}
	if d := cmp.Diff(want, c.HealthListeners); d != "" {
		t.Error(d)
	}
	for text, want := range map[string]string{
		"[{name: " + strings.Repeat("n", 1025) + ", address: {pipe: {path: /a}}}]": "health_listeners[0].name: name of 1025 bytes is longer than 1024",
		"[{}]":            "health_listeners[0].address: required field is not set",
		"[{address: {}}]": "health_listeners[0].address: one of socket_address, pipe must be set",
		"[{name: a, address: {pipe: {path: /a}}}, {name: a, address: {pipe: {path: /b}}}]": `health_listeners[1]: second listener named "a"`,
		"[{name: '', address: {pipe: {path: /a}}}]":                                        "health_listeners[0].name: ",
		"{}": "health_listeners: a mapping is not a list",
	} {
		if _, err := Parse("a.yaml", []byte("health_listeners: "+text), Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
