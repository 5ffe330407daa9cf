package decode_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/upstream/config/decode"
)

func TestStaticCluster(t *testing.T) {
	p, err := decode.StaticCluster("backend", "10.0.0.1:80", "[::1]:81")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range p.Config().Assignment.Localities {
		for _, e := range l.Endpoints {
			got = append(got, netip.AddrPortFrom(e.Address.IP, e.Address.Port).String())
		}
	}
	if strings.Join(got, " ") != "10.0.0.1:80 [::1]:81" || p.Config().Name != "backend" || p.Config().ConnectTimeout <= 0 {
		t.Errorf("hosts %q of %q with a timeout of %v", got, p.Config().Name, p.Config().ConnectTimeout)
	}
	if p, err := decode.StaticCluster("empty"); err != nil || p.Config().Name != "empty" {
		t.Errorf("without hosts: %v", err)
	}
	for _, host := range []string{"", "localhost:80", "10.0.0.1", "10.0.0.1:0", "10.0.0.1:http"} {
		_, err := decode.StaticCluster("backend", host)
		if want := `decode: host "` + host + `" of cluster "backend" is not an IP address and a port`; err == nil || err.Error() != want {
			t.Errorf("%q: error %v, want %s", host, err, want)
		}
	}
	if _, err := decode.StaticCluster("", "10.0.0.1:80"); err == nil {
		t.Error("a cluster without a name is accepted")
	}
}
