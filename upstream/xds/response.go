package xds

import (
	"cmp"
	"errors"
	"fmt"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/statsd-admin/statsd-admin/upstream/config/decode"
)

// Limits of one response beside its size in bytes.
const (
	maxResources = 1 << 20 // removed names included
	maxLabel     = 1 << 16 // bytes of a version, nonce, name or type URL
)

// update is delivered to a subscription.
type update struct {
	full      bool // resources that are not listed are gone
	cached    bool // known before the subscription began
	expired   bool // a TTL ended; the server did not send it
	version   string
	resources []decode.Resource // each with a version
	removed   []string
}

// response is an update as received.
type response struct {
	update
	typeURL    string
	nonce      string
	identifier string // of the control plane
}

// fault is an error in a resource. name is empty if it is unknown.
type fault struct {
	name string
	err  error
}

var (
	errMalformed = errors.New("xds: malformed discovery response")
	errLabel     = fmt.Errorf("xds: a version, nonce, name or type URL is not UTF-8 text of at most %d bytes", maxLabel)
)

// decodeResponse decodes a response of either variant. It references data and copies
// no resource, so its memory is proportional to the size of data whatever the bytes
// are.
func decodeResponse(data []byte, delta bool) (*response, error) {
	plane, removed, wrapped := protowire.Number(6), protowire.Number(0), protowire.Number(0)
	if delta {
		plane, removed, wrapped = 7, 6, 8
	}
	r := new(response)
	r.full = !delta
	var packed [][]byte
	err := eachField(data, func(number protowire.Number, value []byte) (err error) {
		var name string
		switch number {
		case 1:
			r.version, err = label(value)
		case 2:
			packed = append(packed, value)
		case 4:
			r.typeURL, err = label(value)
		case 5:
			r.nonce, err = label(value)
		case plane:
			r.identifier, err = firstLabel(value)
		case removed:
			name, err = label(value)
			r.removed = append(r.removed, name)
		case wrapped:
			name, err = firstLabel(value)
			r.removed = append(r.removed, name)
		}
		if len(packed)+len(r.removed) > maxResources {
			return fmt.Errorf("xds: more than %d resources in a response", maxResources)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	r.resources = make([]decode.Resource, len(packed))
	for i, value := range packed {
		if delta {
			r.resources[i], err = unpackEnvelope(value, i, r.version)
		} else {
			r.resources[i], err = unpackAny(value, i, r.version)
		}
		if err != nil {
			return nil, err
		}
		if len(r.resources[i].Name) > maxLabel { // of a message
			return nil, errLabel
		}
	}
	return r, nil
}

// eachField calls yield with each length-delimited field.
func eachField(data []byte, yield func(number protowire.Number, value []byte) error) error {
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return errMalformed
		}
		data = data[n:]
		if n = protowire.ConsumeFieldValue(number, kind, data); n < 0 {
			return errMalformed
		}
		if kind == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(data)
			if err := yield(number, value); err != nil {
				return err
			}
		}
		data = data[n:]
	}
	return nil
}

// label returns a short text.
func label(value []byte) (string, error) {
	if len(value) > maxLabel || !utf8.Valid(value) {
		return "", errLabel
	}
	return string(value), nil
}

// firstLabel returns the short text in field 1.
func firstLabel(message []byte) (text string, err error) {
	err = eachField(message, func(number protowire.Number, value []byte) (err error) {
		if number == 1 {
			text, err = label(value)
		}
		return err
	})
	return text, err
}

// mergeAny sets the type URL and the content that a packed message has.
func mergeAny(data []byte, typeURL *string, content *[]byte) error {
	return eachField(data, func(number protowire.Number, value []byte) (err error) {
		switch number {
		case 1:
			*typeURL, err = label(value)
		case 2:
			*content = value
		}
		return err
	})
}

// unpackAny returns a packed resource without its envelope.
func unpackAny(data []byte, index int, version string) (r decode.Resource, err error) {
	var typeURL string
	var content []byte
	if err := mergeAny(data, &typeURL, &content); err != nil {
		return r, err
	}
	if messageName(typeURL) == "envoy.service.discovery.v3.Resource" {
		return unpackEnvelope(content, index, version)
	}
	r = decode.WireResource(typeURL, content, index)
	r.Version = version
	return r, nil
}

// unpackEnvelope returns the resource in an envelope. A nested envelope is not
// unpacked.
func unpackEnvelope(data []byte, index int, version string) (r decode.Resource, err error) {
	var name, own, typeURL string
	var content []byte
	var ttl durationpb.Duration
	err = eachField(data, func(number protowire.Number, value []byte) (err error) {
		switch number {
		case 1:
			own, err = label(value)
		case 2:
			err = mergeAny(value, &typeURL, &content)
		case 3:
			name, err = label(value)
		case 6:
			if proto.Unmarshal(value, &ttl) != nil {
				err = errMalformed
			}
		}
		return err
	})
	r = decode.WireResource(typeURL, content, index)
	if ttl.CheckValid() == nil {
		r.TTL = max(ttl.AsDuration(), 0)
	}
	r.Name, r.Version = cmp.Or(name, r.Name), cmp.Or(own, version)
	return r, err
}

// heartbeat reports whether r only confirms that a resource still exists.
func heartbeat(r *decode.Resource) bool { return r.TypeURL == "" && r.Name != "" }
