package logfile

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// TestCheckPermissions runs Check as a user without rights in the directory, on a
// thread of its own that ends with the goroutine.
func TestCheckPermissions(t *testing.T) {
	const nobody = 65534
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o400); err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{filepath.Dir(dir), dir} {
		if err := os.Chmod(d, 0o555); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = os.Chmod(filepath.Dir(dir), 0o755); _ = os.Chmod(dir, 0o755) })
	errs := make(chan [2]error)
	go func() {
		runtime.LockOSThread()
		if os.Getuid() == 0 { // drops the capabilities of this thread
			if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, nobody, nobody, nobody); e != 0 {
				errs <- [2]error{e, e}
				return
			}
		}
		errs <- [2]error{Check(filepath.Join(dir, "new")), Check(filepath.Join(dir, "file"))}
	}()
	got := <-errs
	for i, want := range []string{"its directory: permission denied", "permission denied"} {
		if got[i] == nil || got[i].Error() != want {
			t.Errorf("%v, want %s", got[i], want)
		}
	}
}
