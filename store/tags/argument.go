package tags

import (
	"fmt"
	"strings"
)

// ParseArgument reads a tag of the form name:value, as the command line gives
// it; the first colon separates. The name consists of ASCII letters and digits
// and is not empty, the value may be anything without a dot. Errors have the
// wording that users of such flags know and quote what is wrong.
func ParseArgument(s string) (Tag, error) {
	name, value, ok := strings.Cut(s, ":")
	if !ok || name == "" {
		return Tag{}, fmt.Errorf("misformatted stats-tag '%s'", s)
	}
	for i := range len(name) {
		if !isWord(name[i]) || name[i] == '_' {
			return Tag{}, fmt.Errorf("misformatted stats-tag '%s' contains invalid char in '%s'", s, name)
		}
	}
	if strings.Contains(value, ".") {
		return Tag{}, fmt.Errorf("misformatted stats-tag '%s' contains invalid char in '%s'", s, value)
	}
	return Tag{Name: name, Value: value}, nil
}
