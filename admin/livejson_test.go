package admin

import (
	"testing"

	"github.com/statsd-admin/statsd-admin/internal/jsontext"
)

// TestExactNumbers expects numbers from 2^53 on as text, which JavaScript would round.
func TestExactNumbers(t *testing.T) {
	const bound = 1 << 53
	for n, want := range map[uint64]string{0: "0", bound - 1: "9007199254740991", bound: `"9007199254740992"`} {
		if got := string(jsontext.AppendExact(nil, n)); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	for n, want := range map[int64]string{bound - 1: "9007199254740991", bound: `"9007199254740992"`, 1 - bound: "-9007199254740991", -bound: `"-9007199254740992"`} {
		if got := string(appendExactSigned(nil, n)); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
