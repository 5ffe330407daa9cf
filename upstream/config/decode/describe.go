package decode

import (
	"fmt"
	"strings"

	udpa "github.com/cncf/xds/go/udpa/annotations"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/statsd-admin/statsd-admin/internal/conftree"
	"github.com/statsd-admin/statsd-admin/internal/redact"
)

// redacted replaces sensitive values in texts.
const redacted = redact.Mark

// quote returns a text for error texts. See [conftree.Quote].
func quote(s string, secret bool) string { return conftree.Quote(s, secret) }

// isSensitive reports whether a field holds secrets, as the value of a header can.
func isSensitive(fd protoreflect.FieldDescriptor) bool {
	if fd.ContainingMessage().Name() == "HeaderValue" && fd.Name() != "key" {
		return true
	}
	secret, ok := proto.GetExtension(fd.Options(), udpa.E_Sensitive).(bool)
	return ok && secret
}

// previousName returns the v2 name of a v3 message, empty if there is none.
func previousName(md protoreflect.MessageDescriptor) protoreflect.FullName {
	if v, ok := proto.GetExtension(md.Options(), udpa.E_Versioning).(*udpa.VersioningAnnotation); ok && v != nil {
		return protoreflect.FullName(v.GetPreviousMessageType())
	}
	return ""
}

// shortName returns the name of a message or enum without its package, which
// is the same in both forms.
func shortName(d protoreflect.Descriptor) string {
	return strings.TrimPrefix(string(d.FullName()), string(d.ParentFile().Package())+".")
}

func enumNoun(ed protoreflect.EnumDescriptor) string {
	switch shortName(ed) {
	case "Cluster.DiscoveryType":
		return "a discovery type"
	case "Cluster.LbPolicy":
		return "a load balancing policy"
	case "Cluster.DnsLookupFamily":
		return "a lookup family"
	case "Cluster.RingHashLbConfig.HashFunction":
		return "a hash function"
	case "Cluster.LbSubsetConfig.LbSubsetFallbackPolicy", "Cluster.LbSubsetConfig.LbSubsetSelector.LbSubsetSelectorFallbackPolicy":
		return "a fallback policy"
	}
	return ""
}

// enumText lists the values of an enum that are allowed.
func enumText(ed protoreflect.EnumDescriptor, allowed func(int32) bool) string {
	var names []string
	for i := range ed.Values().Len() {
		v := ed.Values().Get(i)
		if allowed(int32(v.Number())) {
			names = append(names, string(v.Name()))
		}
	}
	list := strings.Join(names, ", ")
	if noun := enumNoun(ed); noun != "" {
		return noun + " (" + list + ")"
	}
	return "one of " + list
}

// oneofConflict returns the error for two fields of a oneof that are both set in the
// message at path.
func oneofConflict(path string, a, b protoreflect.FieldDescriptor) (field, message string) {
	if b.Number() < a.Number() {
		a, b = b, a
	}
	switch shortName(a.ContainingOneof().Parent()) + "." + string(a.ContainingOneof().Name()) {
	case "Cluster.cluster_discovery_type", "Cluster.CommonLbConfig.locality_config_specifier":
		return join(path, string(a.Name())), "cannot be combined with " + string(b.Name())
	}
	return path, fmt.Sprintf("%s and %s cannot both be set", a.Name(), b.Name())
}
