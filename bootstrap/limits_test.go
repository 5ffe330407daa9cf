package bootstrap

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/internal/conftree"
)

// adminLimits are the names of all limits of the administration port.
func adminLimits(t *testing.T) []string {
	t.Helper()
	_, err := Parse("a.yaml", []byte("admin: {limits: {nothing: 1}}"), Options{})
	if err == nil {
		t.Fatal("a limit that there is not")
	}
	_, allowed, _ := strings.Cut(err.Error(), "allowed: ")
	names := strings.Split(allowed, ", ")
	if want := reflect.TypeFor[admin.Limits]().NumField() + 1; len(names) != want {
		t.Fatalf("%d names for %d limits: %q", len(names), want, names)
	}
	return names
}

// TestNegativeLimitsAreNone sets each limit to -1: there is none then, and a
// warning says so. 0 is an error, since it is neither none nor the default.
func TestNegativeLimitsAreNone(t *testing.T) {
	names := adminLimits(t)
	text := "admin:\n  limits:\n"
	for i, name := range names {
		value := "-1"
		if i%2 == 0 && (strings.HasSuffix(name, "time") || strings.HasSuffix(name, "timeout")) {
			value = "-5s" // as any negative time
		}
		text += fmt.Sprintf("    %s: %s\n", name, value)
	}
	c := mustParse(t, text)
	if c.Admin.Limits.CircuitStreams != -1 {
		t.Errorf("CircuitStreams is %d", c.Admin.Limits.CircuitStreams)
	}
	v := reflect.ValueOf(c.Admin.Limits.Limits)
	for i := range v.NumField() {
		if got := v.Field(i).Int(); got != -1 {
			t.Errorf("%s is %d", v.Type().Field(i).Name, got)
		}
	}
	for i, name := range names {
		if want := fmt.Sprintf("a.yaml:%d:%d: admin.limits.%s: no limit", i+3, len(name)+7, name); !strings.Contains(strings.Join(c.Warnings, "\n"), want) {
			t.Errorf("no warning %q", want)
		}
		_, err := Parse("a.yaml", []byte("admin: {limits: {"+name+": 0}}"), Options{})
		if err == nil || !strings.Contains(err.Error(), "admin.limits."+name) {
			t.Errorf("%s: 0: %v", name, err)
		}
	}
}

// TestLargeTexts parses texts of one byte more than is allowed.
func TestLargeTexts(t *testing.T) {
	text := []byte("{}" + strings.Repeat(" ", conftree.MaxBytes-1))
	for _, name := range []string{"a.yaml", "a.json"} {
		if _, err := Parse(name, text, Options{}); err == nil || !strings.Contains(err.Error(), ": 67108865 bytes are more than the limit of 67108864") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestValuesPerByte writes aliases out to ten values for each byte of the text,
// and to one more than that.
func TestValuesPerByte(t *testing.T) {
	const values = 2 + 2 + 1 + 2 + 101 + (1 + 100*101) // root, node, metadata, its keys and lists
	text := "node: {metadata: {a: &a [" + strings.Repeat("x, ", 100) + "], b: [" + strings.Repeat("*a, ", 100) + "]}}\n# "
	for size, ok := range map[int]bool{values/10 + 1: true, values / 10: false} {
		_, errs := parseYAML("a.yaml", []byte(text+strings.Repeat("-", size-len(text))))
		if (errs == nil) != ok || !ok && !strings.Contains(errs[0].Message, fmt.Sprintf("more than %d values", 10*size)) {
			t.Errorf("%d bytes for %d values: %v", size, values, errs)
		}
	}
}
