package xds

import (
	"log/slog"
	"strings"
	"testing"

	runtimev3 "github.com/envoyproxy/go-control-plane/envoy/service/runtime/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/statsd-admin/statsd-admin/upstream/config/decode"
)

// TestLayersWithoutAProgram: a program that takes no layers refuses them.
func TestLayersWithoutAProgram(t *testing.T) {
	l := &layer{c: &Client{log: slog.New(slog.DiscardHandler)}, name: "flags"}
	if err := l.put(nil); err == nil || err.Error() != "xds: runtime layers are not supported by this program" {
		t.Error(err)
	}
}

// TestMalformedRuntimeLayer: the readable part of a broken layer sets no values.
func TestMalformedRuntimeLayer(t *testing.T) {
	body, err := proto.Marshal(&runtimev3.Runtime{Name: "flags"})
	if err != nil {
		t.Fatal(err)
	}
	c := &Client{log: slog.New(slog.DiscardHandler), o: Config{
		Decoder:  decode.NewDecoder(decode.Options{}),
		SetLayer: func(string, map[string]any) error { t.Error("values are set"); return nil },
	}}
	r := decode.WireResource(layerKind.typeURL(), append(body, 0xff), 0)
	r.Name = "flags"
	l := &layer{c: c, name: "flags", to: "flags"}
	if changed, faults := l.apply(&update{resources: []decode.Resource{r}}); changed || len(faults) != 1 {
		t.Errorf("changed %t, faults %v, want one fault", changed, faults)
	}
}

// TestMisnamedRuntimeLayer sends a runtime layer whose resource and message do not
// both have the name that was asked for. The error states both names.
func TestMisnamedRuntimeLayer(t *testing.T) {
	values, err := structpb.NewStruct(map[string]any{"a": 1.0})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ resource, message, want string }{
		{"flags", "flags", ""},
		{"flags", "other", `xds: resource "flags" states the name "other"`},
		{"other", "flags", `xds: resource "other" states the name "flags"`},
		{"other", "other", `xds: resource "other" states the name "other"`},
	} {
		body, err := proto.Marshal(&runtimev3.Runtime{Name: tt.message, Layer: values})
		if err != nil {
			t.Fatal(err)
		}
		set := false
		c := &Client{log: slog.New(slog.DiscardHandler), o: Config{
			Decoder:  decode.NewDecoder(decode.Options{}),
			SetLayer: func(string, map[string]any) error { set = true; return nil },
		}}
		r := decode.WireResource(layerKind.typeURL(), body, 0)
		r.Name = tt.resource
		l := &layer{c: c, name: "flags", to: "flags"}
		changed, faults := l.apply(&update{resources: []decode.Resource{r}})
		switch {
		case changed != (tt.want == "") || set != changed:
			t.Errorf("%+v: changed %t, set %t", tt, changed, set)
		case tt.want != "" && (len(faults) != 1 || faults[0].name != tt.resource || !strings.Contains(faults[0].err.Error(), tt.want)):
			t.Errorf("%+v: faults %v", tt, faults)
		}
	}
}
