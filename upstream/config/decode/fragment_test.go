package decode_test

import (
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/config/decode"
)

func node(t *testing.T, text string) *yaml.Node {
	t.Helper()
	var doc yaml.Node
	if err := yaml.Load([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	return doc.Content[0]
}

func TestFragments(t *testing.T) {
	d := decode.NewDecoder(options())
	in := decode.Source{File: "f"}
	source, _, err := d.ConfigSourceNode(node(t, "path: /x\ninitial_fetch_timeout: 2s"), in, config.FormUnknown)
	if err != nil || source.Kind != config.SourcePath || source.Path != "/x" || source.InitialFetchTimeout.Seconds() != 2 {
		t.Errorf("config source: %+v, %v", source, err)
	}
	api, _, err := d.APISourceNode(node(t, "{api_type: GRPC, grpc_services: [{envoy_grpc: {cluster_name: x}}]}"), in, config.FormUnknown)
	if err != nil || api.Type != config.APIGRPC || len(api.GRPC) != 1 || api.GRPC[0].ClusterName != "x" {
		t.Errorf("API source: %+v, %v", api, err)
	}
	bind, _, err := d.BindNode(node(t, "source_address: {address: 10.0.0.9, port_value: 0}"), in, config.FormUnknown)
	if err != nil || bind.Source.Host != "10.0.0.9" {
		t.Errorf("bind: %+v, %v", bind, err)
	}
	_, _, err = d.ConfigSourceNode(node(t, "path: /x\nads: {}"), in, config.FormUnknown)
	if want := "f:2:1: path and ads cannot both be set"; err == nil || err.Error() != want {
		t.Errorf("config source of two kinds:\n got %v\nwant %s", err, want)
	}
	_, _, err = d.BindNode(node(t, "source_address:\n  address: 10.0.0.9\n  port_value: 70000"), in, config.FormUnknown)
	if want := "f:3:3: source_address.port_value: 70000 exceeds 65535"; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	_, _, err = d.BindNode(node(t, "[1]"), in, config.FormUnknown)
	if err == nil {
		t.Error("a list is a bind config")
	}
}
