// Command reverse-proxy forwards HTTP requests to clusters of a bootstrap file or a
// control plane. It is [httputil.ReverseProxy] over [httptransport.Transport]: health
// checks, balancing, circuit breakers, retries and statistics are the library's, and
// the administration port shows them.
//
//	go run ./examples/reverse-proxy --config bootstrap.yaml --listeners listeners.json
//	curl 127.0.0.1:8080/hello
//	curl 127.0.0.1:9901/clusters
//
// listeners.json lists the listeners; see the type Route:
//
//	[{"name": "web", "address": "127.0.0.1:8080", "cluster": "backend", "timeout": "15s", "retries": 2}]
//
// With --socket-path a second process, started with --restart-epoch 1, takes over
// from a running one without losing a connection.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/statsd-admin/statsd-admin/bootstrap"
	"github.com/statsd-admin/statsd-admin/server"
)

func main() {
	config := flag.String("config", "", "bootstrap `file`; empty: the default, without clusters")
	listeners := flag.String("listeners", "listeners.json", "`file` of listeners")
	var line server.CommandLine
	flag.StringVar(&line.AdminAddressPath, "admin-address-path", "", "`file` to write the address of the administration port to")
	flag.StringVar(&line.SocketPath, "socket-path", "", "prefix of the `names` of sockets for hot restarts; empty: none")
	flag.Uint64Var(&line.BaseID, "base-id", 0, "`number` that distinguishes proxies on one machine")
	epoch := flag.Uint("restart-epoch", 0, "0 for the first process, one more for each that follows")
	flag.DurationVar(&line.DrainTime, "drain-time", 10*time.Minute, "`time` over which connections of clients are drained")
	flag.DurationVar(&line.ParentShutdownTime, "parent-shutdown-time", 15*time.Minute, "`time` after which the previous process is stopped")
	flag.Parse()
	line.RestartEpoch, line.SocketMode = uint32(*epoch), 0o600

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *config, *listeners, line); err != nil {
		log.Fatal(err)
	}
}

// run reads both files and serves until ctx ends.
func run(ctx context.Context, config, listeners string, line server.CommandLine) error {
	boot, err := bootstrap.Load(bootstrap.Source{Path: config}, bootstrap.Options{})
	if err != nil {
		return err
	}
	routes, err := readRoutes(listeners)
	if err != nil {
		return err
	}
	cfg, err := boot.Server(bootstrap.Startup{CommandLine: line, Environment: os.LookupEnv})
	if err != nil {
		return err
	}
	srv, err := newProxy(cfg, routes)
	if err != nil {
		return err
	}
	for _, w := range boot.Warnings {
		srv.Logger("config").Warn(w)
	}
	return srv.Run(ctx)
}

// readRoutes reads the file of listeners. Unknown settings are errors.
func readRoutes(file string) (routes []Route, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&routes); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return routes, nil
}
