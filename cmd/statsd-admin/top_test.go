package main

import (
	"strings"
	"testing"
)

func TestUnicodeLocale(t *testing.T) {
	for env, want := range map[string]bool{"": false, "LANG=C": false, "LANG=en_US.UTF-8": true, "LANG=de_DE.utf8": true, "LC_ALL=C LANG=C.UTF-8": false, "LC_ALL=C.UTF-8 LANG=C": true,
		"LC_CTYPE=C.UTF-8 LANG=C": true, "LC_CTYPE=C LANG=C.UTF-8": false, "LANG=UTF-8.x": false, "LC_ALL= LANG=x.UTF-8": true} {
		got := unicodeLocale(func(name string) string {
			for _, pair := range strings.Fields(env) {
				if value, ok := strings.CutPrefix(pair, name+"="); ok {
					return value
				}
			}
			return ""
		})
		if got != want {
			t.Errorf("%s: %v", env, got)
		}
	}
}
