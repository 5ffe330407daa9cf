package descriptors

import (
	"os"
	"testing"
)

// recorder is a test that may fail.
type recorder struct {
	testing.TB
	failed bool
}

func (r *recorder) Helper()               {}
func (r *recorder) Errorf(string, ...any) { r.failed = true }

// TestCheck closes files, and does not.
func TestCheck(t *testing.T) {
	var kept []*os.File
	for _, closes := range []bool{true, false} {
		r := &recorder{TB: t}
		Check(r, "open", func() {
			f, err := os.Open(os.DevNull)
			if err != nil {
				t.Fatal(err)
			}
			if closes {
				f.Close()
			} else {
				kept = append(kept, f)
			}
		})
		if r.failed == closes {
			t.Errorf("files are closed: %t; Check fails: %t", closes, r.failed)
		}
	}
	for _, f := range kept {
		f.Close()
	}
}
