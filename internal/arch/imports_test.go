package arch

import (
	"slices"
	"strings"
	"testing"
)

// importRow is one row of the import table: a directory or, if it ends with /...,
// all directories below it that have no row.
type importRow struct {
	path string
	may  []string // the packages of this module that it may import; patterns as in path
}

// importTable lists the imports that each package may have, lowest layer first. The
// most specific row counts. "own/..." means the packages below the row's directory:
// for server/certs it is server/certs/..., so that neighbors stay apart.
//
// Any package may import the foundation. A package that may import store may
// import store/tags too, because the store's answers contain its Tag.
func importTable() []importRow {
	return []importRow{
		{".", nil}, // documentation only
		{"certinfo", nil},
		{"symtab", nil},
		{"histogram", nil},
		{"histogram/hdr", []string{"histogram"}},
		{"histogram/exponential", []string{"histogram"}},
		{"match", nil},
		{"store", []string{"symtab", "histogram", "store/tags", "render/naming"}},
		{"store/tags", nil},
		{"store/process", []string{"store"}},
		{"flush", []string{"store", "histogram"}},
		{"flush/sinktest", []string{"flush", "flush/sinkqueue", "store"}},
		{"flush/sinkqueue", []string{"flush", "store", "histogram", "render/naming", "internal/streamend"}},
		{"flush/sinkhttp", []string{"flush/sinkqueue"}},
		{"flush/sinkgrpc", []string{"flush/sinkhttp", "flush/sinkqueue", "internal/protobuf"}},
		{"flush/metricsservice", []string{"flush", "flush/sinkqueue", "flush/sinkhttp", "flush/sinkgrpc", "flush/totals", "store", "histogram", "internal/protobuf"}},
		{"flush/totals", []string{"flush/sinkqueue", "store", "histogram"}},
		{"flush/otlp", []string{"flush", "flush/sinkqueue", "flush/sinkhttp", "flush/totals", "store", "histogram", "histogram/exponential", "render/naming", "internal/protobuf"}},
		{"flush/remotewrite", []string{"flush", "flush/sinkqueue", "flush/sinkhttp", "flush/totals", "store", "histogram", "histogram/exponential", "render/naming", "internal/protobuf"}},
		{"flush/statsdsink", []string{"flush", "flush/sinkqueue", "store", "histogram"}},
		{"flush/graphite", []string{"flush", "flush/sinkqueue", "store", "histogram"}},
		{"flush/jsonlines", []string{"flush", "flush/sinkqueue", "store", "histogram", "render", "internal/jsontext", "internal/logfile"}},
		{"flush/deltastream", []string{"store", "histogram", "render", "internal/jsontext", "internal/sse"}},
		{"flush/eventstream", []string{"flush", "store", "histogram", "internal/sse"}},
		{"flush/...", []string{"flush", "store", "histogram"}},
		{"render", []string{"store", "histogram", "histogram/exponential", "render/naming", "internal/jsontext", "internal/protobuf"}},
		{"render/naming", nil},
		{"statsd", []string{"store", "statsd/...", "render/naming", "internal/unixsock"}},
		{"statsd/...", []string{"store", "statsd/..."}},
		{"statsd/relay", []string{"store", "statsd/line", "statsd/report", "flush", "flush/sinkqueue"}},
		{"upstream", []string{"store", "upstream/...", "internal/streamend"}},
		{"upstream/...", []string{"store", "upstream/...", "certinfo"}},
		{"upstream/discovery", []string{"upstream", "upstream/..."}},
		{"upstream/health", []string{"store", "upstream/...", "internal/protobuf"}},
		{"upstream/status", nil},
		{"upstream/httptransport", []string{"upstream", "upstream/..."}},
		{"upstream/eventlog", []string{"internal/logfile"}},
		{"upstream/config", nil},
		{"upstream/config/...", []string{"certinfo", "upstream/config", "upstream/config/...", "internal/wire", "internal/conftree"}},
		{"upstream/xds", []string{"store", "upstream", "upstream/...", "certinfo"}},
		{"server/configdump", []string{"store", "own/...", "internal/jsontext", "internal/wire", "upstream/config", "upstream/host", "upstream/status", "server/listeners", "admin/dump"}},
		{"server/listeners", []string{"store", "upstream/config"}},
		{"server/accesslog", []string{"internal/logfile", "upstream/config"}},
		{"server/envoyapi", []string{
			"store", "statsd", "admin", "server", "server/configdump", "server/listeners", "server/tap", "upstream", "upstream/...",
		}},
		{"server/tap", []string{"internal/jsontext", "internal/wire", "upstream/config/decode"}},
		{"server/healthlistener", []string{"store", "internal/unixsock"}},
		{"server/hotrestart", []string{"store", "flush", "internal/unixsock"}},
		{"server/...", []string{"store", "own/...", "internal/logfile"}},
		{"server/certs", []string{"certinfo", "store", "own/..."}},
		{"admin", []string{"certinfo", "match", "symtab", "store", "histogram", "histogram/hdr", "flush", "flush/deltastream", "flush/history", "render", "statsd/report", "statsd/line", "upstream/status", "admin/...", "internal/markup", "internal/jsontext", "internal/numfmt", "internal/protobuf", "internal/unixsock",
			"upstream/config", "server/layers", "server/lifecycle", "server/listeners", "server/logctl", "server/profiler"}},
		{"admin/...", []string{"symtab", "store", "histogram", "flush", "render", "admin/...", "internal/jsontext"}},
		{"admin/dump", nil},
		{"admin/ui", nil},
		{"admin/pages", []string{"admin", "admin/dump", "admin/ui", "certinfo", "flush", "flush/history", "histogram", "internal/numfmt", "internal/jsontext", "internal/markup", "internal/product", "internal/redact", "render", "server/layers", "server/listeners", "server/logctl", "statsd/report", "store", "upstream/config", "upstream/status"}},
		{"server", []string{
			"certinfo", "symtab", "histogram", "store", "store/tags", "store/process", "flush", "flush/...", "render", "render/naming", "statsd", "statsd/...",
			"upstream", "upstream/...", "server/...", "admin", "admin/...", "internal/unixsock",
		}},
		{"bootstrap", []string{
			"internal/conftree", "internal/logfile",
			"symtab", "store", "store/tags", "store/process", "flush", "flush/...", "render/naming", "statsd", "statsd/...", "upstream/...", "server", "server/...", "admin",
			"internal/wire",
		}},
		{"cmd/...", []string{"bootstrap", "internal/convert", "internal/expolint", "internal/top", "internal/logfile", "server", "store/tags", "statsd/report", "cmd/..."}},
		{"examples/...", public()},
		{"bench", public()},
		{"bench/...", public()},

		{"internal/accept", nil},
		{"internal/arch", nil},
		{"internal/boundedfile", nil},
		{"internal/certtest", nil},
		{"internal/cgroup", nil},
		{"internal/closedport", nil},
		{"internal/conftree", nil},
		{"internal/convert", []string{"internal/conftree"}},
		{"internal/descriptors", nil},
		{"internal/directory", nil},
		{"internal/dirwatch", nil},
		{"internal/epochtest", nil},
		{"internal/expolint", nil},
		{"internal/numfmt", nil},
		{"internal/fingerprint", nil},
		{"internal/golden", nil},
		{"internal/guard", nil},
		{"internal/guard/guardtest", nil},
		{"internal/clocktest", nil},
		{"internal/waittest", nil},
		{"internal/ocsptest", nil},
		{"internal/jsonschema", nil},
		{"internal/jsontext", nil},
		{"internal/lazyregexp", nil},
		{"internal/logfile", nil},
		{"internal/markup", nil},
		{"internal/nofollow", nil},
		{"internal/oneline", nil},
		{"internal/percpu", nil},
		{"internal/prefetch", nil},
		{"internal/product", nil},
		{"internal/protobuf", nil},
		{"internal/redact", nil},
		{"internal/schedule", nil},
		{"internal/shrinkmap", nil},
		{"internal/spelling", nil},
		{"internal/sse", nil},
		{"internal/streamend", nil},
		{"internal/top", []string{"internal/numfmt"}},
		{"internal/unixsock", nil},
		{"internal/upstreamtest", []string{"store", "upstream/config", "upstream/host"}},
		{"internal/wire", []string{"internal/jsontext"}},
	}
}

// foundation lists the small packages that any other may import.
func foundation() []string {
	return []string{"internal/accept", "internal/boundedfile", "internal/cgroup", "internal/directory", "internal/dirwatch", "internal/fingerprint", "internal/guard", "internal/lazyregexp", "internal/nofollow", "internal/oneline", "internal/percpu", "internal/prefetch", "internal/product", "internal/redact", "internal/schedule", "internal/shrinkmap", "internal/spelling", "match"}
}

// testOnly lists the packages that only test files import.
func testOnly() []string {
	return []string{"internal/certtest", "internal/clocktest", "internal/waittest", "internal/ocsptest", "internal/closedport", "internal/descriptors", "internal/golden", "internal/jsonschema", "internal/guard/guardtest", "internal/epochtest", "internal/upstreamtest", "flush/sinktest"}
}

// public lists the packages that users of the module can import.
func public() []string {
	return []string{
		"certinfo", "symtab", "histogram", "histogram/...", "match", "store", "store/tags", "store/process", "flush", "flush/...", "render", "render/naming", "statsd", "statsd/...",
		"upstream", "upstream/...", "server", "server/...", "admin", "admin/...", "bootstrap", "bootstrap/...", "bench/...",
	}
}

// fits reports whether pattern matches the package at path.
func fits(pattern, path string) bool {
	if parent, ok := strings.CutSuffix(pattern, "/..."); ok {
		return strings.HasPrefix(path, parent+"/")
	}
	return pattern == path
}

// under reports whether path is, or lies below, any of dirs.
func under(path string, dirs ...string) bool {
	return slices.ContainsFunc(dirs, func(r string) bool { return path == r || strings.HasPrefix(path, r+"/") })
}

// rowFor returns the most specific row for the package at path.
func rowFor(path string) (importRow, bool) {
	var best importRow
	for _, r := range importTable() {
		if fits(r.path, path) && (r.path == path || len(r.path) > len(best.path)) {
			best = r
			if r.path == path {
				break
			}
		}
	}
	return best, best.path != ""
}

// mayImport reports whether the table allows package from to import package to.
func mayImport(from, to string) bool {
	row, ok := rowFor(from)
	if !ok {
		return false
	}
	if slices.Contains(foundation(), to) {
		return true
	}
	for _, pattern := range row.may {
		if below, ok := strings.CutPrefix(pattern, "own/"); ok {
			own := from
			if parent, ok := strings.CutSuffix(row.path, "/..."); ok {
				rest := strings.TrimPrefix(from, parent+"/")
				first, _, _ := strings.Cut(rest, "/")
				own = parent + "/" + first
			}
			pattern = own + "/" + below
			if own != from && own == to { // a nested package may not import its parent
				continue
			}
		}
		if fits(pattern, to) || pattern == "store" && to == "store/tags" {
			return true
		}
	}
	return false
}

func TestImportTable(t *testing.T) {
	tests := []struct {
		from, to string
		want     bool
	}{
		{"store", "symtab", true},
		{"store", "store/tags", true},
		{"store", "render", false},
		{"store", "internal/percpu", true},
		{"symtab", "histogram", false},
		{"store/tags", "store", false},
		{"store/tags", "match", true},
		{"flush/statsdsink", "flush", true},
		{"flush/statsdsink", "store/tags", true},
		{"flush/statsdsink", "flush/otlpsink", false},
		{"flush/sinktest", "histogram", false},
		{"render", "flush", false},
		{"statsd", "statsd/line", true},
		{"statsd/line", "render", false},
		{"upstream/health", "upstream/config", true},
		{"upstream/config", "store", false},
		{"upstream", "admin", false},
		{"admin", "upstream", false},
		{"admin", "server/certs", false},
		{"admin", "server", false},
		{"admin", "admin/ui", true},
		{"admin/ui", "store", false},
		{"server/certs", "store", true},
		{"server/certs", "server/logctl", false},
		{"server/certs", "server/certs/ocsp", true},
		{"server/certs/ocsp", "server/certs", false},
		{"server/certs", "admin", false},
		{"server/certs", "server", false},
		{"server", "server/certs", true},
		{"server", "admin", true},
		{"server", "cmd/statsd-admin", false},
		{"cmd/statsd-admin", "server", true},
		{"cmd/statsd-admin", "store", false},
		{"examples/proxy", "server", true},
		{"examples/proxy", "match", true},
		{"examples/proxy", "internal/wire", false},
		{"store", "internal/wire", false},
		{"nowhere", "store", false},
	}
	for _, tt := range tests {
		if got := mayImport(tt.from, tt.to); got != tt.want {
			t.Errorf("may %s import %s: %t, want %t", tt.from, tt.to, got, tt.want)
		}
	}
}

func TestRowsAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range importTable() {
		if seen[r.path] {
			t.Errorf("package %s has two rows", r.path)
		}
		seen[r.path] = true
	}
}
