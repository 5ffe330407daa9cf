package mapping

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/statsd-admin/statsd-admin/internal/lazyregexp"
)

// The syntax of the file format.
const (
	reference = `\$\{?\d+\}?`
)

var (
	nameSyntax  = lazyregexp.New(`^([a-zA-Z_]|` + reference + `)([a-zA-Z0-9_]|` + reference + `)*$`)
	labelSyntax = lazyregexp.New(`^[a-zA-Z_][a-zA-Z0-9_]*$`)
	numbered    = lazyregexp.New(`\$(?:([0-9]+)\b|\{([0-9]+)\})`)
)

// CheckName returns an error if name cannot be the name of a rule: letters,
// digits, underscores and references such as $1 or ${1}, no digit in front.
func CheckName(name string) error {
	switch {
	case name == "":
		return errors.New("is empty; a rule needs a name, even if its action is drop")
	case !nameSyntax().MatchString(name):
		return fmt.Errorf("%q is not a metric name; allowed are letters, digits, underscores and references such as ${1}, and no digit in front", name)
	}
	return nil
}

// CheckLabel returns an error if name cannot be the name of a label.
func CheckLabel(name string) error {
	if !labelSyntax().MatchString(name) {
		return fmt.Errorf("%q is not a label name; allowed are letters, digits and underscores, and no digit in front", name)
	}
	return nil
}

// CheckGlob returns an error if match is not a glob: segments between dots that
// are "*" or consist of letters, digits, underscores and hyphens. The first
// segment cannot begin with a digit, no segment with a hyphen. With partial,
// "*" can also be a part of a segment.
func CheckGlob(match string, partial bool) error {
	if match == "" {
		return errors.New("is empty")
	}
	for i, segment := range strings.Split(match, ".") {
		if err := checkSegment(segment, i == 0, partial); err != nil {
			return fmt.Errorf("%q is not a glob: segment %q %w", match, segment, err)
		}
	}
	return nil
}

func checkSegment(segment string, first, partial bool) error {
	switch {
	case segment == "*":
		return nil
	case segment == "":
		return errors.New("is empty")
	case strings.Contains(segment, "**"):
		return errors.New("has two * side by side")
	case strings.Contains(segment, "*") && !partial:
		return errors.New("has * beside other characters; * is a whole segment unless x-statsd-admin: {partial_globs: true} is set; or use match_type: regex")
	case first && '0' <= segment[0] && segment[0] <= '9':
		return errors.New("begins with a digit, which the first segment cannot; use match_type: regex")
	case segment[0] == '-':
		return errors.New("begins with a hyphen; use match_type: regex")
	}
	for _, c := range segment {
		if c|0x20 >= 'a' && c|0x20 <= 'z' && c < 0x80 || '0' <= c && c <= '9' || c == '_' || c == '-' || c == '*' {
			continue
		}
		return fmt.Errorf("has the character %q; allowed are letters, digits, underscores and hyphens; use match_type: regex for others", c)
	}
	return nil
}

// CheckRegex returns an error if match is not a regular expression.
func CheckRegex(match string) error {
	if _, err := regexp.Compile(match); err != nil {
		return fmt.Errorf("%q is not a regular expression: %w", match, err)
	}
	return nil
}

// MissingReference returns the first reference in a name or the value of a label that
// match does not capture, such as the 3 of $3 for "a.*"; "" if there is none. Of the
// references to a regular expression, it checks the numbers.
func MissingReference(match string, regex bool, text string) string {
	if !strings.Contains(text, "$") {
		return ""
	}
	if !regex {
		_, missing := newTemplate(text, strings.Count(match, "*"))
		return missing
	}
	re, err := regexp.Compile(match)
	if err != nil {
		return ""
	}
	for _, m := range numbered().FindAllStringSubmatch(text, -1) {
		name := m[1] + m[2]
		if n, err := strconv.Atoi(name); err != nil || n > re.NumSubexp() {
			return name
		}
	}
	return ""
}
