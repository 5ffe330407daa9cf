package browser

import (
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/e2e/daemon"
	"github.com/statsd-admin/statsd-admin/internal/certtest"
)

type object = map[string]any

// certificate returns a certificate with names, and its key.
func certificate(t *testing.T, names []string) (chain, private string) {
	p := certtest.Issue(t, &x509.Certificate{DNSNames: names}, nil)
	return string(p.Chain), string(p.Key)
}

// TestConfigurationIsText plants all payloads wherever a configuration or a control
// plane can: names of clusters and of the node, keys and values of the runtime, names
// in certificates, versions (text readouts), and levels and names of missing loggers.
// The browser must not run any of them.
func TestConfigurationIsText(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name string, content any) string {
		text, err := json.Marshal(content)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	var clusters, all, ascii []string
	layer := object{}
	for i, p := range payloads() {
		p = strings.ReplaceAll(p, "\x00", "")
		all = append(all, p)
		layer["planted."+p] = p
		if len(p) <= 50 {
			clusters = append(clusters, fmt.Sprintf("%s#%d", p, i))
		}
		if strings.IndexFunc(p, func(r rune) bool { return r > 126 }) < 0 {
			ascii = append(ascii, p)
		}
	}
	if len(all) < 500 || len(clusters) < 500 {
		t.Fatalf("%d payloads, %d of them names of clusters", len(all), len(clusters))
	}
	chain, private := certificate(t, ascii)
	const version = `<script>canary()</script><img src=x onerror=canary()>`
	const typed = "type.googleapis.com/envoy."
	runtime := write("runtime.json", object{"version_info": version, "resources": []any{object{
		"@type": typed + "service.runtime.v3.Runtime", "name": version, "layer": layer}}})
	var list []any
	for i, name := range clusters {
		c := object{"name": name, "type": "STATIC", "load_assignment": object{"cluster_name": name, "endpoints": []any{object{
			"locality": object{"region": name, "zone": name}, "lb_endpoints": []any{object{"endpoint": object{"hostname": name,
				"address": object{"socket_address": object{"address": "127.0.0.1", "port_value": 9}}}}}}}}}
		if i == 0 {
			c["transport_socket"] = object{"name": "tls", "typed_config": object{"@type": typed + "extensions.transport_sockets.tls.v3.UpstreamTlsContext",
				"sni": "x", "common_tls_context": object{"tls_certificates": []any{object{
					"certificate_chain": object{"inline_string": chain}, "private_key": object{"inline_string": private}}}}}}
		}
		list = append(list, c)
	}
	bootstrap := write("bootstrap.json", object{
		"node":                 object{"id": version, "cluster": all[1], "metadata": layer},
		"admin":                object{"address": object{"socket_address": object{"address": "127.0.0.1", "port_value": 0}}},
		"stats_flush_interval": "0.2s",
		"stats_sinks": []any{object{"name": "proxy.stat_sinks.hystrix",
			"typed_config": object{"@type": typed + "config.metrics.v3.HystrixSink", "num_buckets": 5}}},
		"layered_runtime": object{"layers": []any{object{"name": all[0], "static_layer": layer},
			object{"name": version, "rtds_layer": object{"name": version, "rtds_config": object{"path": runtime}}}, object{"name": "admin", "admin_layer": object{}}}},
		"static_resources": object{"clusters": list},
	})
	d := daemon.Start(t, daemon.Config{Bare: true, Dir: dir, Args: []string{"-c", bootstrap, "--admin-address-path", "$DIR/admin.address"}})
	d.Until("the daemon to be ready", func() bool {
		address, err := os.ReadFile(filepath.Join(dir, "admin.address"))
		d.Admin = string(address)
		return err == nil && len(address) > 0 && strings.Contains(d.Get("/runtime"), "planted.")
	})
	// Each page must show these, or nothing was planted.
	for _, page := range []struct{ path, shows string }{
		{"/", "quitquitquit"},
		{"/stats?format=html&filter=membership_total|version_text", "cluster.<img"},
		{"/stats?filter=membership_total|version_text", "cluster.<img"},
		{"/stats?format=json&filter=membership_total|version_text", "cluster."},
		{"/stats/metrics?text_readouts&filter=membership_total|version_text", "onerror=canary"},
		{"/clusters", "onerror=canary"},
		{"/clusters?format=json", "onerror=canary"},
		{"/config_dump?include_eds", "onerror=canary"},
		{"/certs", "onerror=canary"},
		{"/runtime", "onerror=canary"},
		{"/server_info", "onerror=canary"},
		{"/listeners", ""},
		{"/init_dump", ""},
	} {
		p := open(t)
		p.visit(base(d) + page.path)
		if text := p.text(); !strings.Contains(text, page.shows) {
			t.Errorf("%s lacks %q: %.300s", page.path, page.shows, text)
		}
		if !strings.Contains(page.path, "html") && page.path != "/" {
			if got := eval[float64](p, "document.querySelectorAll('script, img, iframe, svg, form, base, meta[http-equiv], a').length"); got != 0 {
				t.Errorf("%s: %v elements", page.path, got)
			}
		} else if got := eval[float64](p, "document.querySelectorAll('img, iframe, svg, base, meta[http-equiv], [onerror], [onmouseover], [onfocus]').length"); got != 0 {
			t.Errorf("%s: %v elements", page.path, got)
		}
	}
	// Answers to requests of the page are text, too.
	p := open(t)
	p.provoke("status 400 of .*/logging")
	p.visit(base(d) + "/")
	for _, payload := range []string{all[0], all[1], all[3]} {
		for _, path := range []string{"/logging?level=" + url.QueryEscape(payload), "/logging?" + url.QueryEscape(payload) + "=info", "/runtime_modify?" + url.QueryEscape(payload) + "=" + url.QueryEscape(payload)} {
			kind := eval[string](p, `fetch(`+quoted(path)+`, {method: "POST"}).then((r) => r.headers.get("content-type") + " " + r.headers.get("x-content-type-options"))`)
			if kind != "text/plain; charset=UTF-8 nosniff" {
				t.Errorf("%s is answered as %s", path, kind)
			}
		}
	}
}
