package decode

import (
	"google.golang.org/protobuf/proto"

	"github.com/statsd-admin/statsd-admin/upstream/config"
)

// Further forms of input, with which tests reach what all forms share.

// ClusterBytes decodes one cluster from wire bytes of that form; FormUnknown means
// v3.
func (d *Decoder) ClusterBytes(value []byte, form config.Form, index int) (*ParsedCluster, error) {
	return d.ClusterWire(clusterKind().url(form), value, index)
}

// AssignmentText decodes one load assignment in YAML or JSON. See
// [Decoder.ClusterText].
func (d *Decoder) AssignmentText(file string, text []byte, form config.Form) (*ParsedAssignment, error) {
	return d.assignment(d.decodeText(assignmentKind(), file, text, form))
}

// AssignmentWire decodes one load assignment from wire bytes with their type
// URL. See [Decoder.ClusterWire].
func (d *Decoder) AssignmentWire(typeURL string, value []byte, index int) (*ParsedAssignment, error) {
	return d.assignment(d.decodeWire(assignmentKind(), typeURL, value, index))
}

// AssignmentMessage validates a message of either form, which it neither changes nor
// keeps.
func (d *Decoder) AssignmentMessage(m proto.Message, index int) (*ParsedAssignment, error) {
	return d.assignment(d.adopt(assignmentKind(), m, index))
}

// url returns the type URL of the kind in that form.
func (k *resourceKind) url(form config.Form) string {
	if form == config.FormV2 {
		return typePrefix + string(k.v2Name)
	}
	return typePrefix + string(k.v3Name)
}

// SecretText decodes one secret in YAML or JSON. See [Decoder.ClusterText].
func (d *Decoder) SecretText(file string, text []byte, form config.Form) (*ParsedSecret, error) {
	return d.secret(d.decodeText(secretKind(), file, text, form))
}

// SecretWire decodes one secret from wire bytes with their type URL. See
// [Decoder.ClusterWire].
func (d *Decoder) SecretWire(typeURL string, value []byte, index int) (*ParsedSecret, error) {
	return d.secret(d.decodeWire(secretKind(), typeURL, value, index))
}
