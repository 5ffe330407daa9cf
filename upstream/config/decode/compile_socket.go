//lint:file-ignore SA1019 fields that the resource calls deprecated are still in use

package decode

import (
	"cmp"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"

	"github.com/statsd-admin/statsd-admin/upstream/config"
)

func (d *Decoder) socketKind(name string) config.SocketKind {
	return socketKindIn(d.opts.Product, name)
}

func socketKindIn(product, name string) config.SocketKind {
	switch name {
	case "tls", product + ".transport_sockets.tls", tlsSocketName:
		return config.TLSSocket
	case "raw_buffer", product + ".transport_sockets.raw_buffer", "envoy.transport_sockets.raw_buffer":
		return config.RawBuffer
	}
	return config.OtherSocket
}

func (c *compiler) sockets(m *clusterv3.Cluster) config.Sockets {
	out := config.Sockets{Default: c.socket(m.GetTransportSocket()), Matcher: m.GetTransportSocketMatcher() != nil}
	for _, t := range m.GetTransportSocketMatches() {
		out.Matches = append(out.Matches, config.SocketMatch{Name: t.GetName(), Match: freeForm(t.GetMatch()), Socket: c.socket(t.GetTransportSocket())})
	}
	return out
}

func (c *compiler) socket(s *corev3.TransportSocket) config.Socket {
	if s == nil {
		return config.Socket{}
	}
	out := config.Socket{Kind: socketKindIn(c.product, s.GetName()), Name: s.GetName(), Config: extensionAny(s.GetTypedConfig())}
	if free, ok := untyped(s.GetTypedConfig()); ok {
		out.Untyped, out.Config = free, config.Any{}
	}
	if out.Kind == config.TLSSocket {
		out.TLS = tlsContext(s)
	}
	return out
}

// upstreamTLS returns the TLS context of a socket, nil if it holds none.
func upstreamTLS(s *corev3.TransportSocket) *tlsv3.UpstreamTlsContext {
	m, err := unpack(s.GetTypedConfig())
	if err != nil {
		return nil
	}
	t, _ := m.(*tlsv3.UpstreamTlsContext)
	return t
}

func tlsContext(s *corev3.TransportSocket) *config.TLS {
	t := upstreamTLS(s)
	return &config.TLS{
		SNI:                  t.GetSni(),
		AutoHostSNI:          t.GetAutoHostSni(),
		AutoSNISANValidation: t.GetAutoSniSanValidation(),
		AllowRenegotiation:   t.GetAllowRenegotiation(),
		MaxSessionKeys:       given(t.GetMaxSessionKeys(), 1),
		EnforceRSAKeyUsage:   given(t.GetEnforceRsaKeyUsage(), true),
		TLSCommon:            tlsCommon(t.GetCommonTlsContext()),
		Unread:               unread(t),
	}
}

func tlsCommon(t *tlsv3.CommonTlsContext) config.TLSCommon {
	p := t.GetTlsParams()
	out := config.TLSCommon{
		MinVersion:          config.TLSVersion(p.GetTlsMinimumProtocolVersion()),
		MaxVersion:          config.TLSVersion(p.GetTlsMaximumProtocolVersion()),
		CipherSuites:        texts(p.GetCipherSuites()),
		Curves:              texts(p.GetEcdhCurves()),
		SignatureAlgorithms: texts(p.GetSignatureAlgorithms()),
		ALPN:                texts(t.GetAlpnProtocols()),
	}
	for _, c := range t.GetTlsCertificates() {
		out.Certificates = append(out.Certificates, compileCertificate(c))
	}
	for _, s := range t.GetTlsCertificateSdsSecretConfigs() {
		out.CertificateSecrets = append(out.CertificateSecrets, *secret(s))
	}
	switch {
	case t.GetValidationContext() != nil:
		out.Validation = validation(t.GetValidationContext())
	case t.GetValidationContextSdsSecretConfig() != nil:
		out.ValidationSecret = secret(t.GetValidationContextSdsSecretConfig())
	case t.GetCombinedValidationContext() != nil:
		c := t.GetCombinedValidationContext()
		out.Validation = validation(c.GetDefaultValidationContext())
		out.ValidationSecret = secret(c.GetValidationContextSdsSecretConfig())
	}
	return out
}

func compileCertificate(c *tlsv3.TlsCertificate) config.Certificate {
	return config.Certificate{
		Chain:              data(c.GetCertificateChain()),
		PrivateKey:         data(c.GetPrivateKey()),
		PKCS12:             data(c.GetPkcs12()),
		Password:           data(c.GetPassword()),
		OCSPStaple:         data(c.GetOcspStaple()),
		PrivateKeyProvider: c.GetPrivateKeyProvider().GetProviderName(),
		WatchedDirectory:   c.GetWatchedDirectory().GetPath(),
	}
}

func secret(s *tlsv3.SdsSecretConfig) *config.SecretSource {
	if s == nil {
		return nil
	}
	out := &config.SecretSource{Name: s.GetName()}
	if s.GetSdsConfig() != nil {
		source := configSource(s.GetSdsConfig())
		out.Source = &source
	}
	return out
}

func data(d *corev3.DataSource) config.Data {
	switch s := d.GetSpecifier().(type) {
	case *corev3.DataSource_Filename:
		return config.Data{Kind: config.DataFile, Name: s.Filename}
	case *corev3.DataSource_InlineBytes:
		return config.Data{Kind: config.DataInline, Inline: string(s.InlineBytes)}
	case *corev3.DataSource_InlineString:
		return config.Data{Kind: config.DataInline, Inline: s.InlineString}
	case *corev3.DataSource_EnvironmentVariable:
		return config.Data{Kind: config.DataEnvironment, Name: s.EnvironmentVariable}
	}
	return config.Data{}
}

func validation(v *tlsv3.CertificateValidationContext) *config.Validation {
	if v == nil {
		return nil
	}
	out := &config.Validation{
		TrustedCA:        data(v.GetTrustedCa()),
		CRL:              data(v.GetCrl()),
		CRLOfLeafOnly:    v.GetOnlyVerifyLeafCertCrl(),
		SystemRoots:      v.GetSystemRootCerts() != nil,
		WatchedDirectory: v.GetWatchedDirectory().GetPath(),
		SPKI:             texts(v.GetVerifyCertificateSpki()),
		Hashes:           texts(v.GetVerifyCertificateHash()),
		AllowExpired:     v.GetAllowExpiredCertificate(),
		AcceptUntrusted:  v.GetTrustChainVerification() == tlsv3.CertificateValidationContext_ACCEPT_UNTRUSTED,
		MaxVerifyDepth:   given(v.GetMaxVerifyDepth(), config.DefaultVerifyDepth),
	}
	for _, m := range v.GetMatchTypedSubjectAltNames() {
		out.SANs = append(out.SANs, config.SAN{Type: config.SANType(m.GetSanType()), Matcher: stringMatcher(m.GetMatcher())})
	}
	if len(out.SANs) == 0 { // the untyped list is ignored beside a typed one
		out.UntypedSANs = len(v.GetMatchSubjectAltNames()) > 0
		for _, m := range v.GetMatchSubjectAltNames() {
			out.SANs = append(out.SANs, config.SAN{Matcher: stringMatcher(m)})
		}
	}
	return out
}

func configSource(s *corev3.ConfigSource) config.ConfigSource {
	out := config.ConfigSource{InitialFetchTimeout: timer(s.GetInitialFetchTimeout(), defaultFetchTimeout)}
	switch k := s.GetConfigSourceSpecifier().(type) {
	case *corev3.ConfigSource_Path:
		out.Kind, out.Path = config.SourcePath, k.Path
	case *corev3.ConfigSource_PathConfigSource:
		out.Kind, out.Path = config.SourcePath, k.PathConfigSource.GetPath()
		out.WatchedDirectory = k.PathConfigSource.GetWatchedDirectory().GetPath()
	case *corev3.ConfigSource_ApiConfigSource:
		out.Kind, out.API = config.SourceAPI, apiSource(k.ApiConfigSource)
	case *corev3.ConfigSource_Ads:
		out.Kind = config.SourceADS
	case *corev3.ConfigSource_Self:
		out.Kind = config.SourceSelf
	}
	return out
}

func apiSource(a *corev3.ApiConfigSource) *config.APISource {
	out := &config.APISource{SetNodeOnFirstMessageOnly: a.GetSetNodeOnFirstMessageOnly()}
	switch a.GetApiType() {
	case corev3.ApiConfigSource_REST:
		out.Type = config.APIREST
	case corev3.ApiConfigSource_GRPC:
		out.Type = config.APIGRPC
	case corev3.ApiConfigSource_DELTA_GRPC:
		out.Type = config.APIDeltaGRPC
	case corev3.ApiConfigSource_AGGREGATED_GRPC:
		out.Type = config.APIAggregatedGRPC
	case corev3.ApiConfigSource_AGGREGATED_DELTA_GRPC:
		out.Type = config.APIAggregatedDeltaGRPC
	}
	for _, g := range a.GetGrpcServices() {
		out.GRPC = append(out.GRPC, grpcService(g))
	}
	if r := a.GetRateLimitSettings(); r != nil {
		out.RateLimit = &config.RateLimit{MaxTokens: given(r.GetMaxTokens(), 100), FillRate: given(r.GetFillRate(), 10)}
	}
	return out
}

func grpcService(g *corev3.GrpcService) config.GRPCService {
	uri := g.GetGoogleGrpc()
	out := config.GRPCService{
		ClusterName: g.GetEnvoyGrpc().GetClusterName(), Authority: g.GetEnvoyGrpc().GetAuthority(),
		TargetURI:       uri.GetTargetUri(),
		MaxReceiveBytes: given(g.GetEnvoyGrpc().GetMaxReceiveMessageLength(), 0),
		Credentials: uri.GetChannelCredentials() != nil || len(uri.GetChannelCredentialsPlugin()) > 0 ||
			len(uri.GetCallCredentials()) > 0 || len(uri.GetCallCredentialsPlugin()) > 0 || uri.GetCredentialsFactoryName() != "",
	}
	for _, h := range g.GetInitialMetadata() {
		add := config.HeaderToAdd{Name: h.GetKey(), Value: h.GetValue()}
		add.Value = cmp.Or(add.Value, string(h.GetRawValue()))
		out.Metadata = append(out.Metadata, add)
	}
	retry := g.GetEnvoyGrpc().GetRetryPolicy()
	retry = cmp.Or(retry, g.GetRetryPolicy())
	if b := retry.GetRetryBackOff(); b != nil {
		out.RetryBase = timer(b.GetBaseInterval(), 0)
		out.RetryMax = timer(b.GetMaxInterval(), 10*out.RetryBase)
	}
	return out
}
