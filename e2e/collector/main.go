// Collector is the OTLP receiver of the OpenTelemetry Collector, over HTTP and gRPC, with
// a consumer that appends each request to a file, behind its length. It is a program, so
// that tests can kill it.
//
//	collector HTTP-ADDRESS GRPC-ADDRESS FILE VERDICT-FILE
//
// The first word of the verdict file, read for each request, is what becomes of it: ok,
// busy (not taken, to be repeated), later (the same, after a second), refused, or killed
// (taken, then the program ends without an answer). The program prints a line when it is
// ready, and ends with status 3 if an address is taken.
package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	metric "go.opentelemetry.io/otel/metric/noop"
	trace "go.opentelemetry.io/otel/trace/noop"
	"go.uber.org/zap"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
)

func main() {
	if len(os.Args) != 5 {
		fmt.Fprintln(os.Stderr, "collector: want HTTP-ADDRESS GRPC-ADDRESS FILE VERDICT-FILE")
		os.Exit(2)
	}
	if err := start(os.Args[1], os.Args[2], os.Args[3], os.Args[4]); err != nil {
		fmt.Fprintln(os.Stderr, "collector:", err)
		if errors.Is(err, syscall.EADDRINUSE) {
			os.Exit(3)
		}
		os.Exit(1)
	}
	fmt.Println("ready")
	select {}
}

// host is a Collector without extensions.
type host struct{}

func (host) GetExtensions() map[component.ID]component.Component { return nil }

func start(http, grpc, file, verdict string) error {
	out, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	sink, err := consumer.NewMetrics((&keeper{out: out, verdict: verdict}).consume)
	if err != nil {
		return err
	}
	factory := otlpreceiver.NewFactory()
	cfg := factory.CreateDefaultConfig().(*otlpreceiver.Config)
	cfg.Protocols.HTTP.GetOrInsertDefault().ServerConfig.NetAddr.Endpoint = http
	cfg.Protocols.GRPC.GetOrInsertDefault().NetAddr.Endpoint = grpc
	r, err := factory.CreateMetrics(context.Background(), receiver.Settings{
		ID: component.NewID(factory.Type()),
		TelemetrySettings: component.TelemetrySettings{
			Logger: zap.NewNop(), TracerProvider: trace.NewTracerProvider(), MeterProvider: metric.NewMeterProvider(),
			Resource: pcommon.NewResource(),
		},
	}, cfg, sink)
	if err != nil {
		return err
	}
	return r.Start(context.Background(), host{})
}

// keeper appends requests to a file.
type keeper struct {
	verdict string

	mu  sync.Mutex // serializes requests
	out *os.File
}

func (k *keeper) consume(_ context.Context, m pmetric.Metrics) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	text, err := os.ReadFile(k.verdict)
	if err != nil {
		return err
	}
	verdict := strings.TrimSpace(string(text))
	switch verdict {
	case "busy":
		return status.Error(codes.Unavailable, "busy")
	case "later":
		st, err := status.New(codes.ResourceExhausted, "later").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(time.Second)})
		if err != nil {
			return err
		}
		return st.Err()
	case "refused":
		return status.Error(codes.InvalidArgument, "refused")
	}
	body, err := pmetricotlp.NewExportRequestFromMetrics(m).MarshalProto()
	if err != nil {
		return err
	}
	if _, err := k.out.Write(append(binary.AppendUvarint(nil, uint64(len(body))), body...)); err != nil {
		return err
	}
	if verdict == "killed" {
		os.Exit(4)
	}
	return nil
}
