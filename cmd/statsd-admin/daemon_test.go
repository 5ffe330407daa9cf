package main

import (
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/internal/golden"
)

// TestSec_18_OptionsShowNoSecrets: a configuration on the command line is shown
// unless it holds a secret.
func TestSec_18_OptionsShowNoSecrets(t *testing.T) {
	for text, want := range map[string]string{
		"":              "",
		"node: {id: a}": "node: {id: a}",
		"admin: {auth: {tokens_file: /etc/tokens}}":                                                "admin: {auth: {tokens_file: /etc/tokens}}",
		"admin: {auth: {tokens: [{name: a, role: read, sha256: x}]}}":                              "<redacted>",
		"static_resources: {secrets: [{tls_certificate: {private_key: {inline_string: canary}}}]}": "<redacted>",
	} {
		if got := shownOptions(&Options{ConfigYAML: text}).ConfigYAML; got != want {
			t.Errorf("%s is shown as %q", text, got)
		}
	}
}

// TestServerInfoShowsOptions: /server_info has each option as it was given, and the
// node as the command line leaves it. Between them the two lines set all options
// to other values than their defaults, which the first of the files shows.
func TestServerInfoShowsOptions(t *testing.T) {
	dir := t.TempDir()
	const config = `--config-yaml {"node":{"id":"n","cluster":"c","locality":{"region":"r","zone":"z","sub_zone":"s"},"metadata":{"a":"b"},"client_features":["f"]},"admin":{"address":{"socket_address":{"address":"127.0.0.1","port_value":0}}}}`
	for name, args := range map[string]string{
		"server-info-defaults": "",
		"server-info-epoch": "--mode init_only --base-id 7 --restart-epoch 2 --concurrency 3 --log-level warn --component-log-level admin:debug,main:trace " +
			"--log-format %v --log-path " + dir + "/log --admin-address-path " + dir + "/address --service-cluster cc --service-node nn --service-zone zz " +
			"--file-flush-interval-msec 250 --file-flush-min-size-kb 65 --drain-time-s 5 --drain-strategy immediate --parent-shutdown-time-s 6 " +
			"--socket-path " + dir + "/s --socket-mode 660 --base-id-path " + dir + "/base --skip-hot-restart-on-no-parent --stats-tag a:b --stats-tag c:d:e",
		"server-info-switches": "--use-dynamic-base-id --cpuset-threads --local-address-ip-version v6 --allow-unknown-static-fields --reject-unknown-dynamic-fields " +
			"--ignore-unknown-dynamic-fields --disable-extensions a/b,c/d --disable-hot-restart --enable-mutex-tracing --log-format-escaped " +
			"--enable-fine-grain-logging --enable-core-dump --skip-hot-restart-parent-stats --skip-deprecated-logs --log-stacktrace-single-entry --product-name envoy",
	} {
		o, _, err := parseOptions(strings.Fields(config+" "+args), 4)
		if err != nil {
			t.Fatal(err)
		}
		if o.LogPath == "" {
			o.LogPath = dir + "/other"
		}
		c, err := loadConfig(o)
		if err != nil {
			t.Fatal(err)
		}
		d, err := newInstance(o, c, nil)
		if err != nil {
			t.Fatal(err)
		}
		reply := d.(instance).Admin().Request("GET", "/server_info", nil)
		golden.Check(t, name, []byte(strings.NewReplacer(dir, "DIR", buildVersion(), "VERSION").Replace(string(reply.Body))))
	}
}
