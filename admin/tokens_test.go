package admin

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTokenFilesAreBounded expects the largest file and no larger one, and none that
// others can read.
func TestTokenFilesAreBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	line := "# " + strings.Repeat("x", 1021) + "\n"
	text := strings.Repeat(line, maxTokensBytes/len(line))
	text += strings.Repeat("\n", maxTokensBytes-len(text))
	for extra, want := range map[string]string{"": "", "\n": "more than"} {
		if err := os.WriteFile(path, []byte(text+extra), 0o600); err != nil {
			t.Fatal(err)
		}
		if list, err := ReadTokens(path); len(list) != 0 || (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%d bytes: %v", len(text)+len(extra), err)
		}
	}
	if list := (*Tokens)(nil).List(); list != nil {
		t.Errorf("no tokens are %v", list)
	}
	if list := new(Tokens).List(); list != nil {
		t.Errorf("tokens that are not set are %v", list)
	}
}
