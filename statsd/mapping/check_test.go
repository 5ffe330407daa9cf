package mapping

import (
	"strings"
	"testing"
)

func TestMissingReference(t *testing.T) {
	for _, tt := range []struct {
		match string
		regex bool
		text  string
		want  string
	}{
		{"a.*", false, "plain", ""},
		{"a.*", false, "$1_$2", "1_$2"},
		{"a.*", false, "$0.${1}", ""},
		{"a.*.*", false, "${2}${3}${4}", "3"},
		{"a.*", false, "$1_x", "1_x"},
		{"a.*", false, "$ $", ""},
		{"a.*", false, "$zZ09_aA", "zZ09_aA"},
		{"a.*", false, "$x`", "x"},
		{"a.*", false, "$x{", "x"},
		{"a.*", false, "$x@", "x"},
		{"a.*", false, "$x[", "x"},
		{"a.*", false, "$x/", "x"},
		{"a.*", false, "$x:", "x"},
		{"a.(.*)", true, "$1_$2", "2"},
		{"a.(.*)", true, "${1}x$0", ""},
		{"a.(?P<b>.*)", true, "$b ${b}", ""},
		{"a.(.*)", true, "${2}", "2"},
		{"(", true, "$1", ""},
	} {
		if got := MissingReference(tt.match, tt.regex, tt.text); got != tt.want {
			t.Errorf("%s, %s: %q, want %q", tt.match, tt.text, got, tt.want)
		}
	}
}

func TestCheckRegex(t *testing.T) {
	if err := CheckRegex(`a\.(b|c)`); err != nil {
		t.Error(err)
	}
	if err := CheckRegex("a("); err == nil || !strings.HasPrefix(err.Error(), `"a(" is not a regular expression: `) {
		t.Errorf("error %v", err)
	}
}
