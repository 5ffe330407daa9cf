package server_test

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/server"
)

func TestConfigDumpSections(t *testing.T) {
	var d server.ConfigDump
	keys := func(endpoints bool) string {
		var out []string
		for _, s := range d.Sections(endpoints) {
			out = append(out, s.Key)
		}
		return strings.Join(out, " ")
	}
	if got := keys(true); got != "" {
		t.Errorf("at first: %s", got)
	}
	some := func() admin.ConfigSection { return admin.ConfigSection{Message: &emptypb.Empty{}} }
	for _, key := range []string{"secrets", "routes", "route_scopes", "listeners", "endpoint"} {
		d.Set(key, some)
	}
	d.Set("settings", func() admin.ConfigSection { return admin.ConfigSection{} })
	d.Set("routes", nil)
	if got := keys(false); got != "listeners route_scopes secrets" {
		t.Errorf("without endpoints: %s", got)
	}
	if got := keys(true); got != "endpoint listeners route_scopes secrets" {
		t.Errorf("with endpoints: %s", got)
	}
}
