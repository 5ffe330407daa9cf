package configdump

import (
	"time"

	adminv3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"github.com/statsd-admin/statsd-admin/server/listeners"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// Listeners returns the section of the static listeners.
func Listeners(list []listeners.Listener, since time.Time) Section {
	m := &adminv3.ListenersConfigDump{}
	for i := range list {
		m.StaticListeners = append(m.StaticListeners, &adminv3.ListenersConfigDump_StaticListener{
			Listener: packed(listener(&list[i])), LastUpdated: millis(since),
		})
	}
	return Section{Message: m}
}

func listener(l *listeners.Listener) *listenerv3.Listener {
	m := &listenerv3.Listener{Name: l.Name}
	switch l.Direction {
	case listeners.Inbound:
		m.TrafficDirection = corev3.TrafficDirection_INBOUND
	case listeners.Outbound:
		m.TrafficDirection = corev3.TrafficDirection_OUTBOUND
	}
	for i, a := range l.Addresses {
		at := address(a)
		if l.Protocol == listeners.UDP && a.IP.IsValid() {
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
