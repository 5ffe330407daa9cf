package logfile

import (
	"net"
	"os"
	"path/filepath"
	"testing"
)

// TestCheck expects the errors that Open would meet, and that nothing is made.
func TestCheck(t *testing.T) {
	dir := t.TempDir()
	file, link, socket := filepath.Join(dir, "file"), filepath.Join(dir, "link"), filepath.Join(dir, "socket")
	if err := os.WriteFile(file, []byte("line\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for path, want := range map[string]string{
		file:                                "",
		filepath.Join(dir, "new"):           "",
		"/dev/stdout":                       "",
		"/dev/stderr":                       "",
		"/dev/null":                         "",
		dir:                                 "it is a directory",
		link:                                "it is a symbolic link",
		socket:                              "it is not a regular file",
		filepath.Join(dir, "none", "log"):   "its directory: no such file or directory",
		filepath.Join(file, "log"):          `"` + file + `" is not a directory`,
		filepath.Join(file, "below", "log"): "its directory: not a directory",
	} {
		got := ""
		if err := Check(path); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
		if path == "/dev/null" {
			continue
		}
		if f, err := Open(path, Options{}); (err == nil) != (want == "") {
			t.Errorf("%s: Open returns %v, Check %q", path, err, got)
		} else if err == nil {
			f.Close()
			if path == filepath.Join(dir, "new") {
				os.Remove(path)
			}
		}
	}
	if data, err := os.ReadFile(file); string(data) != "line\n" {
		t.Errorf("the file holds %q, %v", data, err)
	}
}

// TestCheckCreatesNothing looks for a file after a Check that succeeded.
func TestCheckCreatesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new")
	if err := Check(path); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("after Check: %v", err)
	}
}
