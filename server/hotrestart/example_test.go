package hotrestart_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/statsd-admin/statsd-admin/server/hotrestart"
)

// A process of epoch 1 looks for its predecessor, which does not run here.
func ExampleDial() {
	dir, err := os.MkdirTemp("", "hot")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	_, err = hotrestart.Dial(hotrestart.Config{Path: filepath.Join(dir, "s"), Epoch: 1}, hotrestart.Successor{})
	fmt.Println(errors.Is(err, hotrestart.ErrNoParent))
	// Output: true
}
