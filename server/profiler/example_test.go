package profiler_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/statsd-admin/statsd-admin/server/profiler"
)

func ExampleNew() {
	dir, err := os.MkdirTemp("", "profile")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	cpu, heap := profiler.New(filepath.Join(dir, "out"))
	fmt.Println(cpu.Start())
	_, err = heap.Start()
	fmt.Println(err == profiler.ErrBusy)
	fmt.Println(cpu.Stop())
	// Output:
	// true <nil>
	// true
	// true <nil>
}
