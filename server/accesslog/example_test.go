package accesslog_test

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/statsd-admin/statsd-admin/server/accesslog"
)

func ExampleLogger() {
	dir, err := os.MkdirTemp("", "access")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "access.log")
	log, err := accesslog.New(accesslog.Config{Path: path, Format: "%REQ(:METHOD)% %RESPONSE_CODE% %DURATION%\n"})
	if err != nil {
		fmt.Println(err)
		return
	}
	log.Log(&accesslog.Entry{Method: "GET", Status: 200, Duration: 3 * time.Millisecond})
	if err := log.Close(); err != nil {
		fmt.Println(err)
	}
	text, _ := os.ReadFile(path)
	fmt.Printf("%s", text)
	// Output: GET 200 3
}
