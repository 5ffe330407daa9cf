package configdump

import (
	"time"

	adminv3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/statsd-admin/statsd-admin/upstream/config"
)

// Listener is a listener of the server.
type Listener struct {
	Name      string
	Addresses []config.Address // where it listens
	UDP       bool
	Inbound   bool
	Outbound  bool
}

// Listeners returns the section of the static listeners.
func Listeners(list []Listener, since time.Time) Section {
	m := &adminv3.ListenersConfigDump{}
	for i := range list {
		m.StaticListeners = append(m.StaticListeners, &adminv3.ListenersConfigDump_StaticListener{
			Listener: packed(list[i].message()), LastUpdated: millis(since),
		})
	}
	return Section{Message: m}
}

func (l *Listener) message() *listenerv3.Listener {
	m := &listenerv3.Listener{Name: l.Name}
	switch {
	case l.Inbound:
		m.TrafficDirection = corev3.TrafficDirection_INBOUND
	case l.Outbound:
		m.TrafficDirection = corev3.TrafficDirection_OUTBOUND
	}
	for i, a := range l.Addresses {
		at := address(a)
		if l.UDP && a.IP.IsValid() {
			at = socketAddress(a.IP, corev3.SocketAddress_UDP)
		}
		if i == 0 {
			m.Address = at
			continue
		}
		m.AdditionalAddresses = append(m.AdditionalAddresses, &listenerv3.AdditionalAddress{Address: at})
	}
	return m
}

// packed returns m packed with its own type. Equal messages have equal bytes.
func packed(m proto.Message) *anypb.Any {
	a := &anypb.Any{}
	if err := anypb.MarshalFrom(a, m, proto.MarshalOptions{Deterministic: true}); err != nil {
		return nil
	}
	return a
}
