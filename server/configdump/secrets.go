package configdump

import (
	"iter"
	"time"

	adminv3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// Secret is a secret of TLS contexts as configured, keys included. The writer must
// redact it.
type Secret struct {
	Name    string
	Version string     // of the update that brought it; not of static secrets
	Message *anypb.Any // as received, with its own type; nil if no version was accepted so far
	Updated time.Time  // when it was accepted, or requested if there was no response
	Failure *Failure   // the last update, if it was refused; nil if not
}

// notInitialized is the version of a secret that has not arrived.
const notInitialized = "uninitialized"

// Secrets returns the section of the secrets: static ones, and delivered ones by
// whether they have arrived.
func Secrets(static, active, warming []Secret) Section {
	dynamic := func(list []Secret) iter.Seq2[string, proto.Message] {
		return secrets(list, func(s *Secret) proto.Message {
			m := &adminv3.SecretsConfigDump_DynamicSecret{
				Name: s.Name, VersionInfo: s.Version, LastUpdated: millis(s.Updated), Secret: shared(s.Message), ErrorState: s.Failure.state(),
			}
			if s.Message == nil {
				m.VersionInfo, m.Secret = notInitialized, packed(&tlsv3.Secret{Name: s.Name})
			}
			return m
		})
	}
	return Section{
		Message: &adminv3.SecretsConfigDump{},
		Lists: map[string]iter.Seq2[string, proto.Message]{
			"static_secrets": secrets(static, func(s *Secret) proto.Message {
				return &adminv3.SecretsConfigDump_StaticSecret{Name: s.Name, LastUpdated: millis(s.Updated), Secret: shared(s.Message)}
			}),
			"dynamic_active_secrets":  dynamic(active),
			"dynamic_warming_secrets": dynamic(warming),
		},
	}
}

func secrets(list []Secret, message func(*Secret) proto.Message) iter.Seq2[string, proto.Message] {
	return func(yield func(string, proto.Message) bool) {
		for i := range list {
			if !yield(list[i].Name, message(&list[i])) {
				return
			}
		}
	}
}
