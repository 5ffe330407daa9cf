package accesslog

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/upstream/config"
)

// there is a runtime with one value.
type there struct{ config.NoRuntime }

func (there) Uint(key string, otherwise uint64) uint64 {
	if key == "there" {
		return 404
	}
	return otherwise
}

func TestFilter(t *testing.T) {
	e := &Entry{
		Method: "GET", Target: "/ready?a=b", Authority: "localhost:9901", Scheme: "http", Status: 404, Duration: 1500 * time.Microsecond,
		RequestHeader: func(name string) string { return map[string]string{"user-agent": "kube-probe/1.30"}[name] },
	}
	is := func(want string) func(string) bool { return func(got string) bool { return got == want } }
	probe := func(v string) bool { return strings.HasPrefix(v, "kube-probe/") }
	number := func(op Op, v uint64) *Comparison { return &Comparison{Op: op, Value: v} }
	yes, no := Filter{Status: number(Equal, 404)}, Filter{Status: number(Equal, 200)}
	for name, tt := range map[string]struct {
		f    Filter
		want bool
	}{
		"nothing":            {Filter{}, true},
		"equal":              {yes, true},
		"not-equal":          {no, false},
		"op-not-equal":       {Filter{Status: number(NotEqual, 404)}, false},
		"op-not-equal-other": {Filter{Status: number(NotEqual, 200)}, true},
		"at-least":           {Filter{Status: number(GreaterOrEqual, 404)}, true},
		"at-least-more":      {Filter{Status: number(GreaterOrEqual, 405)}, false},
		"at-most":            {Filter{Status: number(LessOrEqual, 404)}, true},
		"at-most-less":       {Filter{Status: number(LessOrEqual, 403)}, false},
		"duration":           {Filter{Duration: number(Equal, 1)}, true},
		"duration-longer":    {Filter{Duration: number(GreaterOrEqual, 2)}, false},
		"runtime":            {Filter{Status: &Comparison{Value: 200, RuntimeKey: "there"}}, true},
		"runtime-missing":    {Filter{Status: &Comparison{Value: 200, RuntimeKey: "none"}}, false},
		"both":               {Filter{Status: yes.Status, Duration: number(Equal, 2)}, false},

		"header":                   {Filter{Header: &HeaderTest{Name: "User-Agent", Match: probe}}, true},
		"header-inverted":          {Filter{Header: &HeaderTest{Name: "user-agent", Match: probe, Invert: true}}, false},
		"header-other":             {Filter{Header: &HeaderTest{Name: "user-agent", Match: is("x")}}, false},
		"header-other-inverted":    {Filter{Header: &HeaderTest{Name: "user-agent", Match: is("x"), Invert: true}}, true},
		"header-missing":           {Filter{Header: &HeaderTest{Name: "x-a", Match: is("")}}, false},
		"header-missing-inverted":  {Filter{Header: &HeaderTest{Name: "x-a", Match: is("x"), Invert: true}}, false},
		"header-missing-empty":     {Filter{Header: &HeaderTest{Name: "x-a", Match: is(""), MissingIsEmpty: true}}, true},
		"header-missing-empty-not": {Filter{Header: &HeaderTest{Name: "x-a", Match: is("x"), MissingIsEmpty: true, Invert: true}}, true},
		"present":                  {Filter{Header: &HeaderTest{Name: "user-agent"}}, true},
		"present-not":              {Filter{Header: &HeaderTest{Name: "x-a"}}, false},
		"present-inverted":         {Filter{Header: &HeaderTest{Name: "x-a", Invert: true}}, true},
		"absent":                   {Filter{Header: &HeaderTest{Name: "x-a", Absent: true}}, true},
		"absent-not":               {Filter{Header: &HeaderTest{Name: "user-agent", Absent: true}}, false},
		"absent-inverted":          {Filter{Header: &HeaderTest{Name: "user-agent", Absent: true, Invert: true}}, true},
		"path":                     {Filter{Header: &HeaderTest{Name: ":path", Match: is("/ready?a=b")}}, true},
		"method":                   {Filter{Header: &HeaderTest{Name: ":method", Match: is("GET")}}, true},
		"authority":                {Filter{Header: &HeaderTest{Name: ":authority", Match: is("localhost:9901")}}, true},

		"and":         {Filter{And: []Filter{yes, {}, yes}}, true},
		"and-not":     {Filter{And: []Filter{yes, no}}, false},
		"or":          {Filter{Or: []Filter{no, yes}}, true},
		"or-not":      {Filter{Or: []Filter{no, no}}, false},
		"nested":      {Filter{And: []Filter{yes, {Or: []Filter{no, {And: []Filter{yes, yes}}}}}}, true},
		"nested-not":  {Filter{Or: []Filter{no, {And: []Filter{yes, {Or: []Filter{no}}}}}}, false},
		"and-with-or": {Filter{And: []Filter{yes}, Or: []Filter{no}}, false},
	} {
		keep, err := tt.f.compile(there{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := keep(e); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

func TestFilterDoesNotLookAtSecrets(t *testing.T) {
	for _, f := range []Filter{
		{Header: &HeaderTest{Name: "Authorization"}},
		{And: []Filter{{}, {Header: &HeaderTest{Name: "cookie"}}}},
		{Or: []Filter{{Header: &HeaderTest{Name: "x-api-key"}}, {}}},
	} {
		if err := Check(Config{Filter: f}); err == nil || !strings.Contains(err.Error(), "is secret and cannot be used") {
			t.Errorf("%+v: %v", f, err)
		}
	}
}

func TestFilteredLog(t *testing.T) {
	for _, tt := range []struct {
		key     string
		runtime config.Runtime
		want    string
	}{
		{"", nil, "404\n400\n503\n"},
		{"there", nil, "404\n400\n503\n"},
		{"there", there{}, "404\n503\n"},
	} {
		path := filepath.Join(t.TempDir(), "log")
		l, err := New(Config{Path: path, Format: "%RESPONSE_CODE%", Runtime: tt.runtime, Filter: Filter{Status: &Comparison{Op: GreaterOrEqual, Value: 400, RuntimeKey: tt.key}}})
		if err != nil {
			t.Fatal(err)
		}
		for _, status := range []int{200, 404, 399, 400, 503} {
			l.Log(&Entry{Status: status})
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != tt.want {
			t.Errorf("%+v: %q, %v", tt, got, err)
		}
	}
}
