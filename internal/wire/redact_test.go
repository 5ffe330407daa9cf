package wire

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	udpav1 "github.com/cncf/xds/go/udpa/type/v1"
	xdsv3 "github.com/cncf/xds/go/xds/type/v3"
	adminv3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/config/trace/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/basic_auth/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_authz/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/redis_proxy/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/statsd-admin/statsd-admin/internal/redact"
)

func inline(s string) *corev3.DataSource {
	return &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: s}}
}

func TestRedactedSecretLayout(t *testing.T) {
	secret := &tlsv3.Secret{Name: "s", Type: &tlsv3.Secret_TlsCertificate{TlsCertificate: &tlsv3.TlsCertificate{
		CertificateChain: &corev3.DataSource{Specifier: &corev3.DataSource_Filename{Filename: "/run/cert.pem"}},
		PrivateKey:       inline("key"),
		Password:         &corev3.DataSource{Specifier: &corev3.DataSource_Filename{Filename: "/run/pw"}},
		Pkcs12:           &corev3.DataSource{Specifier: &corev3.DataSource_InlineBytes{InlineBytes: []byte("bytes")}},
	}}}
	want := `{
 "name": "s",
 "tls_certificate": {
  "certificate_chain": {
   "filename": "/run/cert.pem"
  },
  "private_key": {
   "inline_string": "[redacted]"
  },
  "password": {
   "filename": "[redacted]"
  },
  "pkcs12": {
   "inline_bytes": "W3JlZGFjdGVkXQ=="
  }
 }
}
`
	before := proto.Clone(secret)
	if got := render(Redactor{}.Redact(secret), OmitDefaults); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if !proto.Equal(secret, before) {
		t.Error("the original changed")
	}
	// The same, packed twice.
	dump := &adminv3.SecretsConfigDump{StaticSecrets: []*adminv3.SecretsConfigDump_StaticSecret{{Name: "s", Secret: anyOf(t, secret)}}}
	got := render(Redactor{}.Redact(anyOf(t, dump)), OmitDefaults)
	if strings.Contains(got, `"key"`) || strings.Count(got, "[redacted]") != 2 || !strings.Contains(got, "/run/cert.pem") {
		t.Errorf("packed: %s", got)
	}
}

func TestRedactRules(t *testing.T) {
	s := func(fields map[string]any) *structpb.Struct {
		out, err := structpb.NewStruct(fields)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	certType := "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.TlsCertificate"
	key := map[string]any{"inline_string": "hush"}
	jwt := "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
	pem := "x\n-----BEGIN RSA PRIVATE KEY-----\nMII\n"
	tests := []struct {
		name     string
		m        proto.Message
		untyped  bool
		keep     []string
		hide     []string
		redacted int
	}{
		{"generic-secret-map", &tlsv3.GenericSecret{Secrets: map[string]*corev3.DataSource{"mine": inline("hush")}}, false, []string{"mine"}, []string{"hush"}, 1},
		{"typed-struct", &xdsv3.TypedStruct{TypeUrl: certType, Value: s(map[string]any{"private_key": key})}, false, []string{"private_key"}, []string{"hush"}, 1},
		{"typed-struct-udpa", &udpav1.TypedStruct{TypeUrl: certType, Value: s(map[string]any{"private_key": key})}, false, nil, []string{"hush"}, 1},
		{"typed-struct-unknown-type", &xdsv3.TypedStruct{TypeUrl: "a/no.such", Value: s(map[string]any{"private_key": "hush"})}, false, []string{"hush"}, nil, 0},
		{"typed-struct-does-not-parse", &xdsv3.TypedStruct{TypeUrl: certType, Value: s(map[string]any{"x": 1, "private_key": key})}, false, []string{"hush"}, nil, 0},
		{"typed-struct-unknown-untyped", &xdsv3.TypedStruct{TypeUrl: "a/no.such", Value: s(map[string]any{"private_key": "hush"})}, true, nil, []string{"hush"}, 1},
		{"unknown-any", &anypb.Any{TypeUrl: "a/no.such", Value: []byte("hush")}, false, []string{"aHVzaA=="}, nil, 0},
		{"unknown-any-untyped", &anypb.Any{TypeUrl: "a/no.such", Value: []byte("hush")}, true, []string{"no.such", "W3JlZGFjdGVkXQ=="}, []string{"aHVzaA=="}, 0},
		{"any-with-other-bytes", &anypb.Any{TypeUrl: "type.googleapis.com/envoy.config.core.v3.Node", Value: []byte("\xffhush")}, true, []string{"W3JlZGFjdGVkXQ=="}, []string{"aHVz"}, 0},
		{"unknown-any-in-secret", &tlsv3.PrivateKeyProvider{ProviderName: "p", ConfigType: &tlsv3.PrivateKeyProvider_TypedConfig{
			TypedConfig: &anypb.Any{TypeUrl: "a/no.such", Value: []byte("hush")}}}, false, []string{`"p"`}, []string{"aHVzaA==", "no.such"}, 1},
		{"known-any-in-secret", &tlsv3.PrivateKeyProvider{ConfigType: &tlsv3.PrivateKeyProvider_TypedConfig{
			TypedConfig: anyOf(t, &corev3.SocketAddress{Address: "hush", PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: 77}})}},
			false, []string{"SocketAddress"}, []string{"hush", "77"}, 1},
		{"struct-is-not-typed", &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{"a": s(map[string]any{"password": "hush"})}}, false, []string{"hush"}, nil, 0},
		{"struct-keys", &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{"a": s(map[string]any{"db_Password": "hush", "name": "shown",
			"list": []any{map[string]any{"API_KEY": []any{"hush", 5.0}}}})}}, true, []string{"shown", "name"}, []string{"hush", "5"}, 2},
		{"struct-values", s(map[string]any{"a": jwt, "b": pem, "c": "eyJust text", "d": "a PRIVATE KEY----- alone"}), true,
			[]string{"eyJust text", "alone"}, []string{jwt, "MII"}, 2},
		{"values-anywhere", &corev3.Node{Id: pem, Cluster: "bearer " + jwt, Metadata: s(nil)}, true, nil, []string{jwt, "MII"}, 2},
		{"values-only-if-asked", &corev3.Node{Id: jwt}, false, []string{jwt}, nil, 0},
		{"header", &corev3.HeaderValue{Key: "Authorization", Value: "hush"}, true, []string{"Authorization"}, []string{"hush"}, 1},
		{"header-raw", &corev3.HeaderValue{Key: "X-Api-Key", RawValue: []byte("hush")}, true, []string{"W3JlZGFjdGVkXQ=="}, []string{"aHVzaA=="}, 0},
		{"header-by-its-name", &corev3.HeaderValue{Key: "X-Vault-Token", Value: "hush"}, true, nil, []string{"hush"}, 1},
		{"url", s(map[string]any{"url": "https://host/write?api_key=hush", "dsn": "db://u:hush@host", "plain": "http://host:1/?a=b"}), true, []string{"http://host:1/?a=b"}, []string{"hush"}, 2},
		{"header-harmless", &corev3.HeaderValue{Key: "x-team", Value: "shown"}, true, []string{"shown"}, nil, 0},
		{"header-only-if-asked", &corev3.HeaderValue{Key: "cookie", Value: "shown"}, false, []string{"shown"}, nil, 0},
		{"typed-maps-keep-messages", &clusterv3.Cluster{TypedExtensionProtocolOptions: map[string]*anypb.Any{"token": anyOf(t, wrapperspb.String("shown"))}}, true, []string{"shown"}, nil, 0},
		{"unset-stays-unset", &tlsv3.TlsCertificate{}, true, nil, []string{"private_key"}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := render(Redactor{Untyped: tt.untyped}.Redact(tt.m), OmitDefaults)
			for _, want := range tt.keep {
				if !strings.Contains(got, want) {
					t.Errorf("%q is lost: %s", want, got)
				}
			}
			for _, bad := range tt.hide {
				if strings.Contains(got, bad) {
					t.Errorf("%q is shown: %s", bad, got)
				}
			}
			if n := strings.Count(got, redact.Mark); n < tt.redacted || tt.redacted == 0 && n > 0 {
				t.Errorf("%d redactions, want %d: %s", n, tt.redacted, got)
			}
		})
	}
}

// TestKeysOfStructs redacts values under each of the secret names, in any spelling
// and depth, and no others.
func TestKeysOfStructs(t *testing.T) {
	spellings := []func(word string) string{
		func(w string) string { return w }, strings.ToUpper, func(w string) string { return "db_" + w }, func(w string) string { return "X-" + w + "-Old" },
		func(w string) string { return strings.ToUpper(w[:1]) + w[1:] + "s" },
	}
	shapes := []func(key string) map[string]any{
		func(k string) map[string]any { return map[string]any{k: "hush"} },
		func(k string) map[string]any { return map[string]any{"in": map[string]any{k: "hush"}} },
		func(k string) map[string]any { return map[string]any{"in": []any{map[string]any{k: "hush"}}} },
		func(k string) map[string]any { return map[string]any{k: []any{"hush", map[string]any{"a": "hush"}}} },
		func(k string) map[string]any {
			return map[string]any{k: map[string]any{"a": "hush", "b": []any{"hush"}}}
		},
	}
	cases := 0
	check := func(key string, secret bool) {
		for i, shape := range shapes {
			cases++
			m, err := structpb.NewStruct(shape(key))
			if err != nil {
				t.Fatal(err)
			}
			got := render(Redactor{Untyped: true}.Redact(m), OmitDefaults)
			if strings.Contains(got, "hush") == secret || !strings.Contains(got, key) {
				t.Errorf("key %q, shape %d: %s", key, i, got)
			}
			if got := render(Redactor{}.Redact(m), OmitDefaults); !strings.Contains(got, "hush") {
				t.Errorf("key %q, shape %d, where untyped values are shown: %s", key, i, got)
			}
		}
	}
	for _, word := range []string{"password", "passwd", "secret", "token", "private_key", "privateKey", "api_key", "apiKey", "authorization", "cookie", "credential"} {
		for _, spell := range spellings {
			check(spell(word), true)
		}
	}
	for _, word := range []string{"pass", "public_key", "author", "key", "name"} {
		check(word, false)
	}
	if cases < 300 {
		t.Errorf("%d cases, want 300", cases)
	}
}

// plant sets every text in m: to a canary if the definition marks it as secret,
// otherwise to a plain word.
func plant(m protoreflect.Message, secret bool, depth int, planted *int) {
	text := func() string {
		if secret {
			*planted++
			return fmt.Sprintf("canary%d", *planted)
		}
		return "plain"
	}
	scalar := func(fd protoreflect.FieldDescriptor) (protoreflect.Value, bool) {
		switch fd.Kind() {
		case protoreflect.StringKind:
			return protoreflect.ValueOfString(text()), true
		case protoreflect.BytesKind:
			return protoreflect.ValueOfBytes([]byte(text())), true
		}
		return protoreflect.Value{}, false
	}
	fds := m.Descriptor().Fields()
	for i := range fds.Len() {
		fd := fds.Get(i)
		if fd.ContainingOneof() != nil && m.WhichOneof(fd.ContainingOneof()) != nil {
			continue
		}
		was := secret
		secret = secret || Sensitive(fd)
		switch {
		case fd.IsMap() && fd.MapKey().Kind() == protoreflect.StringKind:
			entries := m.Mutable(fd).Map()
			k := protoreflect.ValueOfString("k").MapKey()
			if fd.MapValue().Message() == nil {
				if v, ok := scalar(fd.MapValue()); ok {
					entries.Set(k, v)
				}
			} else if depth > 0 {
				plant(entries.Mutable(k).Message(), secret, depth-1, planted)
			}
		case fd.IsMap():
		case fd.IsList() && fd.Message() != nil:
			if depth > 0 {
				plant(m.Mutable(fd).List().AppendMutable().Message(), secret, depth-1, planted)
			}
		case fd.IsList():
			if v, ok := scalar(fd); ok {
				m.Mutable(fd).List().Append(v)
			}
		case fd.Message() != nil:
			if depth > 0 {
				plant(m.Mutable(fd).Message(), secret, depth-1, planted)
			}
		default:
			if v, ok := scalar(fd); ok {
				m.Set(fd, v)
			}
		}
		secret = was
	}
}

// TestNoCanaryIsShown plants a text in every secret field of every known message.
// None is shown, however it is packed.
func TestNoCanaryIsShown(t *testing.T) {
	messages, all := 0, 0
	protoregistry.GlobalTypes.RangeMessages(func(mt protoreflect.MessageType) bool {
		if strings.HasPrefix(string(mt.Descriptor().FullName()), "google.protobuf.") {
			return true
		}
		m, planted := mt.New(), 0
		plant(m, false, 3, &planted)
		messages++
		all += planted
		if planted == 0 {
			return true
		}
		for _, untyped := range []bool{false, true} {
			for _, form := range []proto.Message{m.Interface(), anyOf(t, m.Interface()), anyOf(t, anyOf(t, m.Interface()))} {
				redacted := Redactor{Untyped: untyped}.Redact(form)
				if got := render(redacted, ShowDefaults); strings.Contains(got, "canary") || strings.Contains(got, "Y2FuYXJ5") {
					t.Errorf("%s shows a secret: %s", mt.Descriptor().FullName(), got)
				}
				if again := (Redactor{Untyped: untyped}).Redact(redacted); !proto.Equal(again, redacted) {
					t.Errorf("%s: redacting twice changes more", mt.Descriptor().FullName())
				}
			}
		}
		return true
	})
	if messages < 500 || all < 100 {
		t.Errorf("%d messages with %d secrets: the test does not see what it should", messages, all)
	}
}

// TestRedactForWriting writes all messages of the tests above, packed again and
// unpacked: the results are equal, and an unpacked message contains no more secrets
// than a packed one.
func TestRedactForWriting(t *testing.T) {
	list := (&adminv3.SecretsConfigDump{}).ProtoReflect().Descriptor().Fields().ByName("static_secrets")
	n := 0
	protoregistry.GlobalTypes.RangeMessages(func(mt protoreflect.MessageType) bool {
		m, planted := mt.New(), 0
		plant(m, false, 3, &planted)
		if planted == 0 {
			return true
		}
		n++
		for _, form := range []proto.Message{m.Interface(), anyOf(t, m.Interface()), anyOf(t, anyOf(t, m.Interface()))} {
			r := Redactor{Untyped: true}
			want := render(r.Redact(form), OmitDefaults)
			var w Writer
			w.Message(w.Redact(r, list, form), OmitDefaults)
			if got := string(w.Bytes()); got != want {
				t.Errorf("%s: got %s\nwant %s", mt.Descriptor().FullName(), got, want)
			}
			var again Writer
			if left := render(again.Redact(r, list, form), ShowDefaults); strings.Contains(left, "canary") || strings.Contains(left, "Y2FuYXJ5") {
				t.Errorf("%s: left behind: %s", mt.Descriptor().FullName(), left)
			}
		}
		return true
	})
	if n < 10 {
		t.Errorf("%d messages with secrets", n)
	}
}

// TestDeepSecrets packs a secret deeper than messages are inspected.
func TestDeepSecrets(t *testing.T) {
	list := (&adminv3.SecretsConfigDump{}).ProtoReflect().Descriptor().Fields().ByName("static_secrets")
	for _, depth := range []int{1, maxDepth - 1, maxDepth, maxDepth + 1, 2 * maxDepth} {
		var m proto.Message = &tlsv3.TlsCertificate{PrivateKey: inline("canary")}
		for range depth {
			m = anyOf(t, m)
		}
		for _, untyped := range []bool{false, true} {
			r := Redactor{Untyped: untyped}
			var w, packed Writer
			w.Message(w.Redact(r, list, m), OmitDefaults)
			packed.Packed(packed.Redact(r, list, m))
			for _, got := range []string{string(w.Bytes()), string(packed.Bytes()), render(r.Redact(m), OmitDefaults)} {
				if strings.Contains(got, "canary") || strings.Contains(got, "Y2FuYXJ5") || strings.Contains(got, base64.StdEncoding.EncodeToString([]byte("canary"))) {
					t.Errorf("%d deep: %s", depth, got)
				}
				// Bytes within bytes are not aligned to groups of three.
				for _, field := range strings.Split(got, `"value": "`)[1:] {
					raw, err := base64.StdEncoding.DecodeString(strings.SplitN(field, `"`, 2)[0])
					if err == nil && bytes.Contains(raw, []byte("canary")) {
						t.Errorf("%d deep: in bytes: %q", depth, raw)
					}
				}
			}
		}
	}
}

// FuzzRedact redacts packed messages of arbitrary bytes: the result is valid, and
// redaction is idempotent.
func FuzzRedact(f *testing.F) {
	for _, m := range []proto.Message{&tlsv3.TlsCertificate{PrivateKey: inline("hush")}, &corev3.HeaderValue{Key: "cookie", Value: "x"},
		&corev3.Node{Id: "-----BEGIN PRIVATE KEY-----"}, &xdsv3.TypedStruct{TypeUrl: "type.googleapis.com/envoy.config.core.v3.Node"}} {
		a := anyOf(f, m)
		f.Add(a.TypeUrl, a.Value, true)
		f.Add(a.TypeUrl, a.Value, false)
	}
	f.Fuzz(func(t *testing.T, url string, raw []byte, untyped bool) {
		r := Redactor{Untyped: untyped}
		once := r.Redact(&anypb.Any{TypeUrl: url, Value: raw})
		if twice := r.Redact(once); render(twice, OmitDefaults) != render(once, OmitDefaults) {
			t.Errorf("once %v, twice %v", once, twice)
		}
	})
}

// TestFilesOfSecretsAreShown has settings that name the file of a secret. Anything but
// an absolute path can be the secret itself.
func TestFilesOfSecretsAreShown(t *testing.T) {
	for value, shown := range map[any]bool{"/etc/tokens": true, "hush": false, 7.0: false} {
		m, err := structpb.NewStruct(map[string]any{"tokens_file": value})
		if err != nil {
			t.Fatal(err)
		}
		got := Redactor{Untyped: true}.Redact(m).(*structpb.Struct).Fields["tokens_file"].AsInterface()
		if (got == value) != shown {
			t.Errorf("%v became %v", value, got)
		}
	}
	m, err := structpb.NewStruct(map[string]any{"token": "/etc/tokens", "secret": map[string]any{"token_file": "/etc/tokens"}})
	if err != nil {
		t.Fatal(err)
	}
	if got := render(Redactor{Untyped: true}.Redact(m), OmitDefaults); strings.Contains(got, "/etc") {
		t.Errorf("below a secret: %s", got)
	}
}
