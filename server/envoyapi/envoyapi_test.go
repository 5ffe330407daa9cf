package envoyapi

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/server"
	"github.com/statsd-admin/statsd-admin/server/configdump"
	"github.com/statsd-admin/statsd-admin/server/tap"
	"github.com/statsd-admin/statsd-admin/statsd"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/xds"
)

// TestAddKeepsTheProgramsDump: a program's own source of /config_dump stays.
func TestAddKeepsTheProgramsDump(t *testing.T) {
	own := new(configdump.Dump)
	cfg := server.Config{Admin: admin.Config{Sources: admin.Sources{ConfigDump: own}}}
	if d := Add(&cfg, Config{}); d == own || cfg.Admin.Sources.ConfigDump != own {
		t.Error("the source of the program was replaced")
	}
	cfg = server.Config{}
	if d := Add(&cfg, Config{}); cfg.Admin.Sources.ConfigDump != d {
		t.Error("the server does not show the dump")
	}
}

// TestClustersAreFollowed only with a source of clusters.
func TestClustersAreFollowed(t *testing.T) {
	for _, cds := range []*config.ConfigSource{nil, {Kind: config.SourcePath, Path: "/nowhere/clusters.yaml"}} {
		var cfg server.Config
		Add(&cfg, Config{CDS: cds})
		s, err := server.New(server.Config{})
		if err != nil {
			t.Fatal(err)
		}
		control, err := cfg.Clusters.Control(s)
		if err != nil || control.FollowsClusters() != (cds != nil) {
			t.Errorf("source %v: follows clusters %t, %v", cds, control.FollowsClusters(), err)
		}
		s.Clusters().Close()
	}
}

// TestSecretsByState: secrets without a valid version are warming, with the refused one.
func TestSecretsByState(t *testing.T) {
	message, err := anypb.New(wrapperspb.String("x"))
	if err != nil {
		t.Fatal(err)
	}
	bad := &xds.Failure{Name: "b", Details: "no certificate", Version: "7", Attempt: time.Unix(1e9, 0)}
	followed := slices.Values([]*xds.SecretState{{Name: "a", Version: "1", Message: message}, {Name: "b", Failure: bad}})
	var cfg server.Config
	dump := Add(&cfg, Config{})
	s, err := server.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Clusters().Close()
	dump.Set("secrets", func() configdump.Section { return dumpSecrets(nil, time.Time{}, followed) })
	for resource, want := range map[string][]string{
		"dynamic_active_secrets":  {`"name": "a"`, `"version_info": "1"`},
		"dynamic_warming_secrets": {`"name": "b"`, `"details": "no certificate"`, `"version_info": "7"`, `"last_update_attempt": "2001-09-09T01:46:40Z"`},
	} {
		body := string(s.Admin().Request("GET", "/config_dump?resource="+resource, nil).Body)
		for _, w := range want {
			if !strings.Contains(body, w) {
				t.Errorf("%s lacks %s:\n%s", resource, w, body)
			}
		}
		if n := strings.Count(body, ".DynamicSecret\""); n != 1 {
			t.Errorf("%s has %d secrets:\n%s", resource, n, body)
		}
	}
}

// TestAddTapKeepsTheConfig: the program's log of requests stays, and its StatsD
// configuration is not changed.
func TestAddTapKeepsTheConfig(t *testing.T) {
	logged := 0
	input := statsd.Config{}
	cfg := server.Config{StatsD: &input, Admin: admin.Config{AccessLog: func(admin.Access) { logged++ }}}
	AddTap(&cfg)
	if cfg.Admin.AccessLog(admin.Access{}); logged != 1 {
		t.Errorf("%d requests logged, want 1", logged)
	}
	if input.Tap != nil || cfg.StatsD == &input {
		t.Error("the caller's StatsD configuration was changed")
	}
	if cfg.StatsD.Tap() != nil {
		t.Error("lines are copied without a tap")
	}
}

// TestExchangeOf: a trace has no headers that can hold secrets.
func TestExchangeOf(t *testing.T) {
	headers := map[string]string{"user-agent": "u", "authorization": "Bearer x", "cookie": "y", "content-type": "t", "content-encoding": "gzip", "set-cookie": "z"}
	get := func(name string) string { return headers[name] }
	a := &admin.Access{Time: time.Unix(1, 0), Method: "GET", Target: "/stats?x", Host: "h", Status: 200, RequestHeader: get, ResponseHeader: get}
	field := func(name, value string) tap.Field { return tap.Field{Name: name, Value: value} }
	want := tap.Exchange{
		Time:     time.Unix(1, 0),
		Request:  []tap.Field{field(":method", "GET"), field(":path", "/stats?x"), field(":authority", "h"), field("user-agent", "u"), field("content-type", "t")},
		Response: []tap.Field{field(":status", "200"), field("content-type", "t"), field("content-encoding", "gzip")},
	}
	if got := exchangeOf(a); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	a.RequestHeader, a.ResponseHeader = nil, nil
	want.Request, want.Response = want.Request[:3], want.Response[:1]
	if got := exchangeOf(a); !reflect.DeepEqual(got, want) {
		t.Errorf("without headers: %+v", got)
	}
}
