package layers

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func TestFileText(t *testing.T) {
	tests := []struct{ file, want string }{
		{"", ""}, {"hello", "hello"}, {"hello \t\n", "hello"}, {"# comment\nhello\n", "hello"},
		{"# only\n# comments\n", ""}, {"a\nb\n", "a\nb"}, {"a \nb ", "a \nb"}, {" # not a comment", " # not a comment"},
		{"a\n#c\nb\n#d", "a\nb"}, {"\n\n", ""}, {"a\r\n", "a"},
	}
	for _, tt := range tests {
		if got := fileText([]byte(tt.file)); got != tt.want {
			t.Errorf("fileText(%q) = %q, want %q", tt.file, got, tt.want)
		}
	}
}

func TestBrokenTreesAreLeftOut(t *testing.T) {
	for _, root := range []string{filepath.Join(t.TempDir(), "none"), filepath.Join(tree(t, map[string]string{"file": "v"}), "file")} {
		if cells, exists, err := readTree(root); exists || err != nil || cells != nil {
			t.Errorf("%s is no directory: %v, %t, %v", root, cells, exists, err)
		}
	}
	deep := strings.Repeat("d/", 15)
	tests := []struct {
		name  string
		files map[string]string
		link  [2]string
		want  string // part of the log; "" when the layer loads
	}{
		{"depth-16", map[string]string{deep + "k": "v"}, [2]string{}, ""},
		{"depth-17", map[string]string{deep + "d/k": "v"}, [2]string{}, "Walk recursion depth exceeded 16"},
		{"link-to-proc", map[string]string{"k": "v"}, [2]string{"/proc/self", "p"}, "Invalid path: "},
		{"link-to-dev-file", map[string]string{"k": "v"}, [2]string{"/proc/version", "p"}, "Invalid path: "},
		{"link-to-self", map[string]string{"k": "v"}, [2]string{".", "self"}, "Walk recursion depth exceeded 16"},
		{"link-to-nowhere", map[string]string{"k": "v"}, [2]string{"/nowhere/at/all", "p"}, ""},
		{"device", map[string]string{"k": "v"}, [2]string{"/dev/zero", "p"}, ""}, // not a regular file: skipped
		{"reserved", map[string]string{"a/numerator": "v"}, [2]string{}, `"numerator" is a reserved word`},
		{"reserved-dir", map[string]string{"denominator/k": "v"}, [2]string{}, `"denominator" is a reserved word`},
		{"large", map[string]string{"k": strings.Repeat("x", maxFileBytes)}, [2]string{}, ""},
		{"too-large", map[string]string{"k": strings.Repeat("x", maxFileBytes+1)}, [2]string{}, "more than 1048576 bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			root := tree(t, tt.files)
			if tt.link[1] != "" {
				if err := os.Symlink(tt.link[0], filepath.Join(root, tt.link[1])); err != nil {
					t.Fatal(err)
				}
			}
			_, exists, err := readTree(root)
			if !exists || (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("exists %v, err %v, want %q", exists, err, tt.want)
			}
			stats, s := newStats()
			l := mustNew(t, Config{Stats: s, Layers: []Layer{{Name: "d", Kind: Disk, SymlinkRoot: root}, {Name: "a", Kind: Admin}}})
			want, wantStats := "d a", "1 0 0 1"
			if tt.want != "" {
				want, wantStats = "a", "0 1 0 1"
			}
			if got := strings.Join(l.Snapshot().Layers(), " "); got != want || !strings.HasPrefix(stats.line(), wantStats) {
				t.Errorf("layers %q, stats %s", got, stats.line())
			}
		})
	}
	for _, dir := range []string{"/proc", "/sys/kernel", "/dev"} {
		if _, _, err := readTree(dir); err == nil || err.Error() != "Invalid path: "+dir {
			t.Errorf("readTree(%s): %v", dir, err)
		}
	}
}

// FuzzRuntimeFile checks that the text of any file has no leading comment line and no
// trailing white space, and survives a round trip; that a number equals its decimal
// form; and that a fraction has a known denominator.
func FuzzRuntimeFile(f *testing.F) {
	for _, s := range []string{"", "5", "3.7\n", "# c\ntrue", "numerator: 5\ndenominator: HUNDRED\n", "{numerator: 1}", "-0", "1e308", "\xff#"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		text := fileText(data)
		if again := fileText([]byte(text)); again != text {
			t.Errorf("%q reads back as %q", text, again)
		}
		if strings.HasPrefix(text, "#") || strings.TrimRight(text, " \t\r\n\v\f") != text {
			t.Errorf("%q keeps a comment or white space", text)
		}
		v := parseText(text)
		if v.isDouble {
			again := parseText(strconv.FormatFloat(v.double, 'g', -1, 64))
			if again.double != v.double || again.isBool != v.isBool || again.isInteger != v.isInteger {
				t.Errorf("%q: %+v, from its decimal form %+v", text, v, again)
			}
		}
		if v.isFraction && v.fraction.Denominator != Hundred && v.fraction.Denominator != TenThousand && v.fraction.Denominator != Million {
			t.Errorf("%q: fraction %+v", text, v.fraction)
		}
		if v.isFraction && (v.isBool || v.isDouble) {
			t.Errorf("%q is two things: %+v", text, v)
		}
	})
}
