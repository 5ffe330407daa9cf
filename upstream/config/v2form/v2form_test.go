package v2form_test

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/config/decode"
	"github.com/statsd-admin/statsd-admin/upstream/config/v2form"
)

func ExampleMessages() {
	d := decode.NewDecoder(decode.Options{V2: v2form.Messages()})
	p, err := d.ClusterText("cluster.yaml", []byte(`
name: backend
type: STRICT_DNS
hosts:
- socket_address: {address: backend.example, port_value: 80}
`), config.FormUnknown)
	if err != nil {
		fmt.Println(err)
		return
	}
	host := p.Cluster.Assignment.Localities[0].Endpoints[0].Address
	fmt.Println(p.TypeURL())
	fmt.Println(p.Cluster.Name, host.Host, host.Port, p.Cluster.ConnectTimeout)
	// Output:
	// type.googleapis.com/envoy.api.v2.Cluster
	// backend backend.example 80 5s
}

// TestOnlyThisPackageIsHeavy keeps gRPC out of programs that do without the v2
// form.
func TestOnlyThisPackageIsHeavy(t *testing.T) {
	if testing.Short() {
		t.Skip("lists packages with the go command")
	}
	out, err := exec.Command("go", "list", "-deps", "github.com/statsd-admin/statsd-admin/upstream/config").Output()
	if err != nil {
		t.Skipf("no go command: %v", err)
	}
	for dep := range strings.Lines(string(out)) {
		dep = strings.TrimSpace(dep)
		if strings.HasPrefix(dep, "google.golang.org/grpc") || strings.Contains(dep, "/envoy/api/v2") {
			t.Errorf("upstream/config brings %s", dep)
		}
	}
}
