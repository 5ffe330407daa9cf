package decode_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/match"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/config/decode"
)

// TestValuesAtTheirLimitAreAccepted has each limit of a cluster as a value, and the next one
// beyond it, which must be refused.
func TestValuesAtTheirLimitAreAccepted(t *testing.T) {
	members := func(fields string) string { return "load_assignment: {cluster_name: c, " + fields + "}\n" }
	check := func(fields string) string {
		return "health_checks: [{timeout: 1s, interval: 1s, healthy_threshold: 1, unhealthy_threshold: 1, " + fields + "}]\n"
	}
	statuses := func(start, end int) string {
		return check(fmt.Sprintf("http_health_check: {path: /, expected_statuses: [{start: 200, end: 201}, {start: %d, end: %d}]}", start, end))
	}
	weighted := func(weight uint64) string {
		return fmt.Sprintf("{load_balancing_weight: %d, endpoint: {address: {pipe: {path: /x}}}}", weight)
	}
	const most = 1<<32 - 1
	regex := func(expr string) string {
		return check("http_health_check: {path: /, service_name_matcher: {safe_regex: {regex: '" + expr + "'}}}")
	}
	for name, tt := range map[string]struct{ at, beyond, fault string }{
		"name":          {"name: " + strings.Repeat("x", 1024), "name: " + strings.Repeat("x", 1025), "name: 1025 bytes exceeds 1024"},
		"alt-stat-name": {"alt_stat_name: " + strings.Repeat("x", 1024), "alt_stat_name: " + strings.Repeat("x", 1025), "alt_stat_name: 1025 bytes exceeds 1024"},
		"ring-minimum": {"lb_policy: RING_HASH\nring_hash_lb_config: {minimum_ring_size: 8388608}", "lb_policy: RING_HASH\nring_hash_lb_config: {minimum_ring_size: 8388609}",
			"ring_hash_lb_config.minimum_ring_size: 8388609 exceeds 8388608"},
		"ring-order": {"lb_policy: RING_HASH\nring_hash_lb_config: {minimum_ring_size: 20, maximum_ring_size: 20}", "lb_policy: RING_HASH\nring_hash_lb_config: {minimum_ring_size: 21, maximum_ring_size: 20}",
			"ring_hash_lb_config: minimum_ring_size 21 exceeds maximum_ring_size 20"},
		"ring-order-of-the-largest": {"lb_policy: RING_HASH\nring_hash_lb_config: {minimum_ring_size: 8388608, maximum_ring_size: 8388608}", "lb_policy: RING_HASH\nring_hash_lb_config: {minimum_ring_size: 8388608, maximum_ring_size: 8388607}",
			"ring_hash_lb_config: minimum_ring_size 8388608 exceeds maximum_ring_size 8388607"},
		"maglev-largest":               {"lb_policy: MAGLEV\nmaglev_lb_config: {table_size: 5000011}", "lb_policy: MAGLEV\nmaglev_lb_config: {table_size: 5000012}", "maglev_lb_config.table_size: 5000012 exceeds 5000011"},
		"maglev-smallest":              {"lb_policy: MAGLEV\nmaglev_lb_config: {table_size: 2}", "lb_policy: MAGLEV\nmaglev_lb_config: {table_size: 1}", "maglev_lb_config.table_size: 1 is not a prime number"},
		"maglev-three":                 {"lb_policy: MAGLEV\nmaglev_lb_config: {table_size: 3}", "lb_policy: MAGLEV\nmaglev_lb_config: {table_size: 4}", "maglev_lb_config.table_size: 4 is not a prime number"},
		"maglev-square":                {"lb_policy: MAGLEV\nmaglev_lb_config: {table_size: 23}", "lb_policy: MAGLEV\nmaglev_lb_config: {table_size: 25}", "maglev_lb_config.table_size: 25 is not a prime number"},
		"maglev-zero":                  {"lb_policy: MAGLEV\nmaglev_lb_config: {}", "lb_policy: MAGLEV\nmaglev_lb_config: {table_size: 0}", "maglev_lb_config.table_size: 0 is not a prime number"},
		"ejection-time":                {"outlier_detection: {base_ejection_time: 5s, max_ejection_time: 5s}", "outlier_detection: {base_ejection_time: 5s, max_ejection_time: 4.999s}", "outlier_detection.max_ejection_time: 4.999s is below base_ejection_time 5s"},
		"ejection-time-of-the-default": {"outlier_detection: {max_ejection_time: 30s}", "outlier_detection: {max_ejection_time: 29.999s}", "outlier_detection.max_ejection_time: 29.999s is below base_ejection_time 30s"},
		"drop": {members("policy: {drop_overloads: [{category: x, drop_percentage: {numerator: 100}}]}"), members("policy: {drop_overloads: [{category: x, drop_percentage: {numerator: 1010000, denominator: MILLION}}]}"),
			"load_assignment.policy.drop_overloads[0].drop_percentage: 101% exceeds 100%"},
		"status-lowest":  {statuses(100, 101), statuses(99, 101), "health_checks[0].http_health_check.expected_statuses[1].start: 99 is below 100"},
		"status-highest": {statuses(599, 600), statuses(599, 601), "health_checks[0].http_health_check.expected_statuses[1].end: 601 exceeds 600"},
		"status-order":   {statuses(300, 301), statuses(300, 300), "health_checks[0].http_health_check.expected_statuses[1]: start 300 must be less than end 300"},
		"alt-port":       {check("alt_port: 65535, tcp_health_check: {}"), check("alt_port: 65536, tcp_health_check: {}"), "health_checks[0].alt_port: 65536 exceeds 65535"},
		"weights": {members("endpoints: [{lb_endpoints: [" + weighted(most-1) + ", " + weighted(1) + "]}]"), members("endpoints: [{lb_endpoints: [" + weighted(most-1) + ", " + weighted(2) + "]}]"),
			"load_assignment.endpoints[0].lb_endpoints: sum of weights exceeds 4294967295"},
		"weights-of-localities": {members("endpoints: [{load_balancing_weight: 4294967294}, {load_balancing_weight: 1}]"), members("endpoints: [{load_balancing_weight: 4294967294}, {load_balancing_weight: 2}]"),
			"load_assignment.endpoints[1].load_balancing_weight: sum of weights exceeds 4294967295"},
		"weights-by-priority": {members("endpoints: [{load_balancing_weight: 4294967295}, {priority: 1, load_balancing_weight: 4294967295}]"), members("endpoints: [{load_balancing_weight: 4294967295}, {priority: 1, load_balancing_weight: 5}, {load_balancing_weight: 1}]"),
			"load_assignment.endpoints[2].load_balancing_weight: sum of weights exceeds 4294967295"},
		"fallback-keys": {"lb_subset_config: {subset_selectors: [{keys: [a, b], fallback_policy: KEYS_SUBSET, fallback_keys_subset: [b]}]}", "lb_subset_config: {subset_selectors: [{keys: [c]}, {keys: [a, b], fallback_policy: KEYS_SUBSET, fallback_keys_subset: [b, a]}]}",
			"lb_subset_config.subset_selectors[1].fallback_keys_subset: must be smaller than keys"},
		"regex-length": {regex(strings.Repeat("a", match.MaxPatternBytes)), regex(strings.Repeat("a", match.MaxPatternBytes+1)),
			`health_checks[0].http_health_check.service_name_matcher.safe_regex.regex: "` + strings.Repeat("a", 80) + `"… is longer than 1024 bytes`},
		"regex-size": {regex(strings.Repeat("a{1000}", 9)), regex(strings.Repeat("a{1000}", 10)),
			`health_checks[0].http_health_check.service_name_matcher.safe_regex.regex: "` + strings.Repeat("a{1000}", 10) + `" compiles to more than 10000 instructions`},
	} {
		runRules(t, []ruleTest{{name + "-at", v3, tt.at + "\n", nil}, {name + "-beyond", v3, tt.beyond + "\n", one(tt.fault)}})
	}
}

// TestWarningsAtTheirLimit has a name and the number of errors and warnings at the limit.
func TestWarningsAtTheirLimit(t *testing.T) {
	for n, want := range map[int]int{60: 0, 61: 1} {
		if w := mustParse(t, "name: "+strings.Repeat("n", n)+"\ntype: ORIGINAL_DST\nlb_policy: CLUSTER_PROVIDED\n").Warnings(); len(w) != want {
			t.Errorf("a name of %d bytes: %v", n, w)
		}
	}
	heavy := func(n int) []byte {
		return []byte("name: c\nload_assignment: {cluster_name: c, endpoints: [{lb_endpoints: [" +
			strings.Repeat("{load_balancing_weight: 101, endpoint: {address: {pipe: {path: /x}}}}, ", n) + "]}]}\n")
	}
	strict := options()
	strict.Strict = true
	for _, n := range []int{99, 100, 101, 103} {
		if w := mustParse(t, string(heavy(n))).Warnings(); len(w) != min(n, 100) {
			t.Errorf("%d of %d warnings", len(w), n)
		}
		_, err := decode.NewDecoder(strict).ClusterText("", heavy(n), v3)
		list, ok := err.(*decode.Errors)
		if !ok || len(list.List) != min(n, 100) || list.Dropped != max(0, n-100) {
			t.Errorf("%d errors: %v", n, err)
			continue
		}
		if more := strings.HasSuffix(err.Error(), fmt.Sprintf("\nand %d more", n-100)); more != (n > 100) {
			t.Errorf("%d errors: %s", n, err)
		}
	}
}

// TestEachNameThatIsUsedTwiceIsReported has the names that are used twice first, in the
// middle and last.
func TestEachNameThatIsUsedTwiceIsReported(t *testing.T) {
	for names, want := range map[string]int{"aab": 1, "aba": 1, "baa": 1, "aaa": 2, "abab": 2, "abc": 0, "": 0} {
		var list []*decode.ParsedCluster
		for _, name := range names {
			list = append(list, mustParse(t, fmt.Sprintf("name: %c\ntype: ORIGINAL_DST\nlb_policy: CLUSTER_PROVIDED\n", name)))
		}
		n := 0
		if err := decode.CheckNames(list); err != nil {
			n = len(err.(*decode.Errors).List)
		}
		if n != want {
			t.Errorf("%s: %d errors, want %d", names, n, want)
		}
	}
}

// TestPriorityOfTheLocalCluster has the locality that is wrong first, last and without
// endpoints.
func TestPriorityOfTheLocalCluster(t *testing.T) {
	full, none := []config.Endpoint{{}}, []config.Endpoint(nil)
	for _, tt := range []struct {
		localities []config.LocalityEndpoints
		want       string
	}{
		{nil, "<nil>"},
		{[]config.LocalityEndpoints{{Priority: 1, Endpoints: none}, {Endpoints: full}}, "<nil>"},
		{[]config.LocalityEndpoints{{Priority: 1, Endpoints: full}, {Endpoints: full}}, `cluster "l": load_assignment.endpoints[0].priority: must be 0 in the local cluster`},
		{[]config.LocalityEndpoints{{Endpoints: full}, {Priority: 2, Endpoints: full}}, `cluster "l": load_assignment.endpoints[1].priority: must be 0 in the local cluster`},
		{[]config.LocalityEndpoints{{Priority: 1, Endpoints: full}, {Priority: 2, Endpoints: full}}, `cluster "l": load_assignment.endpoints[0].priority: must be 0 in the local cluster` + "\n" +
			`cluster "l": load_assignment.endpoints[1].priority: must be 0 in the local cluster`},
	} {
		if got := fmt.Sprint(decode.CheckLocalAssignment("l", &config.Assignment{Localities: tt.localities})); got != tt.want {
			t.Errorf("%+v: %q, want %q", tt.localities, got, tt.want)
		}
	}
	if err := decode.CheckLocalAssignment("l", nil); err != nil {
		t.Errorf("without an assignment: %v", err)
	}
}
