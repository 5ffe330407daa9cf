package xds

import (
	"cmp"
	"context"
	"fmt"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/statsd-admin/statsd-admin/internal/guard"
	"github.com/statsd-admin/statsd-admin/upstream"
	"github.com/statsd-admin/statsd-admin/upstream/config"
)

// codec sends messages and returns received bytes, which are checked before they are
// decoded.
type codec struct{}

// Name returns the content subtype of protobuf.
func (codec) Name() string { return "proto" }

// Marshal encodes a message.
func (codec) Marshal(v any) (mem.BufferSlice, error) {
	b, err := proto.Marshal(v.(proto.Message))
	return mem.BufferSlice{mem.SliceBuffer(b)}, err
}

// Unmarshal copies the bytes.
func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

// grpcStream is a stream with its own connection, so that each attempt picks a host.
type grpcStream struct {
	grpc.ClientStream
	conn  *grpc.ClientConn
	delta bool
}

func (s *grpcStream) Send(m proto.Message) error { return s.SendMsg(m) }

func (s *grpcStream) Recv() (*response, error) {
	var data []byte
	if err := s.RecvMsg(&data); err != nil {
		return nil, err
	}
	return decodeResponse(data, s.delta)
}

func (s *grpcStream) Close() { _ = s.conn.Close() }

func (c *Client) openGRPC(ctx context.Context, api *config.APISource, delta bool, method string) (stream, error) {
	target := &api.GRPC[0]
	most := c.o.MaxMessageBytes
	if n := int(target.MaxReceiveBytes); n > 0 {
		most = min(most, n)
	}
	o := []grpc.DialOption{
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(most), grpc.ForceCodecV2(codec{})),
		grpc.WithDisableServiceConfig(), grpc.WithDisableRetry(), grpc.WithNoProxy(),
		grpc.WithUserAgent(c.o.Store.Product()),
	}
	uri := target.TargetURI
	creds := credentials.TransportCredentials(insecure.NewCredentials())
	switch {
	case target.ClusterName != "":
		uri = "passthrough:///cluster" // the dialer knows the cluster
		authority := cmp.Or(target.Authority, target.ClusterName)
		cl, err := c.control(target.ClusterName)
		if err != nil {
			return nil, err
		}
		if k, ok := keepalives(cl.Config()); ok {
			o = append(o, grpc.WithKeepaliveParams(k))
		}
		o = append(o, grpc.WithAuthority(authority),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (conn net.Conn, err error) { // runs in a goroutine of the gRPC library
				if !guard.New(c.o.Logger).Run("connection to a control plane", func() { conn, err = c.manager.DialGRPC(ctx, target.ClusterName) }) {
					return nil, errPanic
				}
				return conn, err
			}))
	case c.o.Credentials != nil:
		var err error
		if creds, err = c.o.Credentials(*target); err != nil {
			return nil, fmt.Errorf("xds: credentials for %q: %w", uri, err)
		}
	}
	conn, err := grpc.NewClient(uri, append(o, grpc.WithTransportCredentials(creds))...)
	if err != nil {
		return nil, fmt.Errorf("xds: target %q: %w", uri, err)
	}
	for _, h := range target.Metadata {
		ctx = metadata.AppendToOutgoingContext(ctx, h.Name, h.Value)
	}
	s, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, method)
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return &grpcStream{s, conn, delta}, nil
}

// keepalives returns the pings that detect a dead connection. There are none unless
// the cluster configures them.
func keepalives(c *config.Cluster) (p keepalive.ClientParameters, ok bool) {
	h := &c.HTTP.HTTP2Options
	return keepalive.ClientParameters{Time: h.KeepaliveInterval, Timeout: h.KeepaliveTimeout}, h.KeepaliveInterval > 0
}

func (c *Client) control(name string) (*upstream.Cluster, error) {
	if h := c.manager.Cluster(name); h != nil {
		if cl := h.Current(); cl != nil {
			return cl, nil
		}
	}
	return nil, fmt.Errorf("xds: there is no cluster %q for the control plane", name)
}
