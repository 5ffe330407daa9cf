package eventlog_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/statsd-admin/statsd-admin/upstream/eventlog"
)

func Example() {
	dir, err := os.MkdirTemp("", "eventlog")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	logs := eventlog.New()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan error)
	go func() { done <- logs.Run(ctx) }()
	f, err := logs.Open(filepath.Join(dir, "outlier.log"))
	if err != nil {
		fmt.Println(err)
		return
	}
	_, _ = f.Write([]byte(`{"action":"EJECT"}` + "\n"))
	_ = f.Close()
	cancel()
	<-done
	text, _ := os.ReadFile(filepath.Join(dir, "outlier.log"))
	fmt.Print(string(text))
	// Output: {"action":"EJECT"}
}
