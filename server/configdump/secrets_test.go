package configdump

import (
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"

	"github.com/statsd-admin/statsd-admin/internal/golden"
	"github.com/statsd-admin/statsd-admin/internal/wire"
)

func TestSecrets(t *testing.T) {
	text := func(s string) *corev3.DataSource {
		return &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: s}}
	}
	file := func(s string) *corev3.DataSource {
		return &corev3.DataSource{Specifier: &corev3.DataSource_Filename{Filename: s}}
	}
	cert := packed(&tlsv3.Secret{Name: "cert", Type: &tlsv3.Secret_TlsCertificate{TlsCertificate: &tlsv3.TlsCertificate{
		CertificateChain: file("/run/cert.pem"), PrivateKey: text("hush"), Password: file("/run/pw"),
		Pkcs12: &corev3.DataSource{Specifier: &corev3.DataSource_InlineBytes{InlineBytes: []byte("hush")}},
	}}})
	ca := packed(&tlsv3.Secret{Name: "ca", Type: &tlsv3.Secret_ValidationContext{ValidationContext: &tlsv3.CertificateValidationContext{TrustedCa: file("/run/ca.pem")}}})
	keys := packed(&tlsv3.Secret{Name: "keys", Type: &tlsv3.Secret_SessionTicketKeys{SessionTicketKeys: &tlsv3.TlsSessionTicketKeys{Keys: []*corev3.DataSource{text("hush")}}}})
	generic := packed(&tlsv3.Secret{Name: "generic", Type: &tlsv3.Secret_GenericSecret{GenericSecret: &tlsv3.GenericSecret{Secret: text("hush"), Secrets: map[string]*corev3.DataSource{"a": text("hush")}}}})
	section := Secrets(
		[]Secret{{Name: "cert", Message: cert, Updated: at()}, {Name: "keys", Message: keys, Updated: at()}, {Name: "generic", Message: generic}},
		[]Secret{
			{Name: "ca", Version: "v1", Message: ca, Updated: at()},
			{Name: "cert", Version: "v1", Message: cert, Updated: at(), Failure: &Failure{Message: cert, At: at().Add(time.Hour), Details: "no", Version: "v2"}},
		},
		[]Secret{{Name: "late", Updated: at()}, {Name: "refused", Updated: at(), Failure: &Failure{At: at(), Details: "never", Version: "v3"}}},
	)
	m := wire.Redactor{}.Redact(whole(section))
	body := render(t, Section{Message: m})
	golden.Check(t, "secrets", body)
	if strings.Contains(string(body), "hush") || strings.Contains(string(body), "aHVzaA") || strings.Contains(string(body), "/run/pw") {
		t.Error("a secret is shown")
	}
	golden.Check(t, "secrets-none", render(t, Secrets(nil, nil, nil)))
	if proto.Equal(m, whole(section)) {
		t.Error("redaction changed the messages of the section")
	}
	for list := range section.Lists {
		for range section.Lists[list] {
			break // must not go on
		}
	}
}
