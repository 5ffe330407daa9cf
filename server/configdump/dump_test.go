package configdump_test

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/statsd-admin/statsd-admin/admin/dump"
	"github.com/statsd-admin/statsd-admin/server/configdump"
)

func TestDumpSections(t *testing.T) {
	var d configdump.Dump
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
	var body strings.Builder
	if err := d.Write(&body, dump.Query{Resource: "static_secrets"}); err == nil || err.Error() != dump.NotFound("static_secrets").Error() {
		t.Errorf("without sections: %v", err)
	}
	some := func() configdump.Section { return configdump.Section{Message: &emptypb.Empty{}} }
	for _, key := range []string{"secrets", "routes", "route_scopes", "listeners", "endpoint"} {
		d.Set(key, some)
	}
	d.Set("settings", func() configdump.Section { return configdump.Section{} })
	d.Set("routes", nil)
	if got := keys(false); got != "listeners route_scopes secrets" {
		t.Errorf("without endpoints: %s", got)
	}
	if got := keys(true); got != "endpoint listeners route_scopes secrets" {
		t.Errorf("with endpoints: %s", got)
	}
}
