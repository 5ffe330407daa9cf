package decode

import (
	"fmt"

	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"go.yaml.in/yaml/v4"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/statsd-admin/statsd-admin/upstream/config"
)

// ParsedSecret is a validated secret with its original message.
type ParsedSecret struct {
	Original
	Secret *config.Secret

	namePosition Position
}

func secretKind() *resourceKind {
	return &resourceKind{
		noun: "secret", nameField: "name",
		v2Name: "envoy.api.v2.auth.Secret", v3Name: "envoy.extensions.transport_sockets.tls.v3.Secret",
		newV3: func() proto.Message { return &tlsv3.Secret{} },
		newV2: func(*Decoder) proto.Message {
			if mt, err := protoregistry.GlobalTypes.FindMessageByName("envoy.api.v2.auth.Secret"); err == nil {
				return mt.New().Interface() // linked in together with the v2 clusters
			}
			return &tlsv3.Secret{}
		},
	}
}

// SecretNode decodes one secret from a tree of YAML nodes. See
// [Decoder.ClusterNode].
func (d *Decoder) SecretNode(n *yaml.Node, s Source, form config.Form) (*ParsedSecret, error) {
	return d.secret(d.decodeNode(secretKind(), n, s, form))
}

// SecretResource decodes a secret. See [Decoder.ClusterText].
func (d *Decoder) SecretResource(r *Resource) (*ParsedSecret, error) {
	return d.secret(d.decodeResource(secretKind(), r))
}

// secret validates and compiles a decoded secret and reads its files if the options
// say so.
func (d *Decoder) secret(m proto.Message, r *report) (*ParsedSecret, error) {
	l, o := d.prepare(m, r)
	if l == nil {
		return nil, r.err()
	}
	v3 := l.message.(*tlsv3.Secret)
	k := clusterCheck{report: r, d: d}
	if v3.GetName() == "" {
		r.errorf(BadValue, "name", "must not be empty")
	}
	s := &config.Secret{Name: v3.GetName()}
	switch t := v3.GetType().(type) {
	case *tlsv3.Secret_TlsCertificate:
		k.tlsCertificate("tls_certificate", t.TlsCertificate)
		c := compileCertificate(t.TlsCertificate)
		s.Kind, s.Certificate = config.CertificateSecret, &c
	case *tlsv3.Secret_ValidationContext:
		k.certificate("validation_context.trusted_ca", t.ValidationContext.GetTrustedCa())
		k.sans("validation_context", t.ValidationContext)
		s.Kind, s.Validation = config.ValidationSecret, validation(t.ValidationContext)
	case nil:
		r.errorf(BadValue, "", "needs one of tls_certificate, session_ticket_keys, validation_context, generic_secret")
	}
	if err := r.err(); err != nil {
		return nil, err
	}
	s.Unread = unread(v3)
	o.warnings = r.warnings
	return &ParsedSecret{Original: o, Secret: s, namePosition: r.position("name")}, nil
}

// CheckSecretNames returns an [*Errors] with an error for each secret whose name is
// already used by a secret of the same kind, nil if names are unique.
func CheckSecretNames(secrets []*ParsedSecret) error {
	type id struct {
		kind config.SecretKind
		name string
	}
	seen := make(map[id]bool, len(secrets))
	var out report
	for _, s := range secrets {
		x := id{s.Secret.Kind, s.Secret.Name}
		if seen[x] && x.kind != config.OtherSecret {
			out.errs = append(out.errs, &Error{
				Position: s.namePosition, Kind: Conflict, Resource: secretKind().label(x.name, 0),
				Field: "name", Message: fmt.Sprintf("%s is already used by another %s", quote(x.name, false), x.kind),
			})
		}
		seen[x] = true
	}
	return out.err()
}
