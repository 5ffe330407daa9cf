package pages

import (
	"fmt"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/server/layers"
)

// layered is a server with these runtime layers.
func layered(t *testing.T, list ...layers.Layer) *admin.Server {
	t.Helper()
	runtime, err := layers.New(layers.Config{Layers: list})
	if err != nil {
		t.Fatal(err)
	}
	return world(t, "plain", func(c *admin.Config) { c.Sources.Runtime = runtime })
}

// TestOverrideUnderAnotherLayer expects the button that removes an override for keys of
// the admin layer, wherever that layer is, and says which layer above it wins.
func TestOverrideUnderAnotherLayer(t *testing.T) {
	srv := layered(t, layers.Layer{Name: "base", Kind: layers.Static, Values: map[string]any{"low": 1, "both": 2}}, layers.Layer{Name: "mine", Kind: layers.Admin},
		layers.Layer{Name: "top", Kind: layers.Static, Values: map[string]any{"both": 3}})
	for target, want := range map[string]string{
		"runtime?key=both": "The value comes from the layer <code class='wrap'>top</code>, which is above the admin layer: a value that is set here has no effect.",
		"runtime?key=low":  "The value comes from a layer below. It can be overridden, not deleted.",
	} {
		body := string(request(srv, target, "").Body)
		checkPage(t, srv, []byte(body))
		if !strings.Contains(body, want) || strings.Contains(body, "Remove override") {
			t.Errorf("%s: no %q, or an override to remove, in\n%s", target, want, body)
		}
	}
	if body := string(request(srv, "runtime?key=both", "").Body); !strings.Contains(body, "data-effect='The value of the layer top stays in effect.'") {
		t.Error("the confirmation does not say that the value has no effect")
	}
	srv.Request("POST", "/runtime_modify?low=7", nil)
	body := string(request(srv, "runtime?key=low", "").Body)
	if strings.Count(body, "Remove override<span class='vh'> of low</span>") != 1 || strings.Count(body, "Remove override") != 1 || strings.Contains(body, "from a layer below") {
		t.Error(body)
	}
}

// TestNoAdminLayer expects no form that would fail, and what turns it on.
func TestNoAdminLayer(t *testing.T) {
	srv := layered(t, layers.Layer{Name: "base", Kind: layers.Static, Values: map[string]any{"key": 1}})
	for _, target := range []string{"runtime", "runtime?key=key", "runtime?key=new"} {
		body := string(request(srv, target, "").Body)
		checkPage(t, srv, []byte(body))
		if strings.Contains(body, "method='post'") || strings.Contains(body, "name='key'") || !strings.Contains(body, "a layer with <code>admin_layer</code> in <code>layered_runtime</code> turns this on.") {
			t.Errorf("%s:\n%s", target, body)
		}
	}
}

// TestKeysToChoose expects at most 500 keys as suggestions, and a table of all.
func TestKeysToChoose(t *testing.T) {
	for _, n := range []int{500, 501} {
		values := map[string]any{}
		for i := range n {
			values[fmt.Sprintf("key%03d", i)] = 1
		}
		srv := layered(t, layers.Layer{Name: "base", Kind: layers.Static, Values: values}, layers.Layer{Name: "mine", Kind: layers.Admin})
		body := string(request(srv, "runtime", "").Body)
		if got := strings.Count(body, "<option value='key"); got != 500 {
			t.Errorf("%d of %d keys are suggested", got, n)
		}
	}
}
