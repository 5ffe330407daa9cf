//lint:file-ignore SA1019 fields that the resource calls deprecated are still in use

package config

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
)

// socketKind tells what a transport socket is by its name.
func (d *Decoder) socketKind(name string) SocketKind { return socketKindIn(d.opts.Product, name) }

func socketKindIn(product, name string) SocketKind {
	switch name {
	case "tls", product + ".transport_sockets.tls", tlsSocketName:
		return TLSSocket
	case "raw_buffer", product + ".transport_sockets.raw_buffer", "envoy.transport_sockets.raw_buffer":
		return RawBuffer
	}
	return OtherSocket
}

func (c *compiler) sockets(m *clusterv3.Cluster) Sockets {
	out := Sockets{Default: c.socket(m.GetTransportSocket()), Matcher: m.GetTransportSocketMatcher() != nil}
	for _, t := range m.GetTransportSocketMatches() {
		out.Matches = append(out.Matches, SocketMatch{Name: t.GetName(), Match: freeForm(t.GetMatch()), Socket: c.socket(t.GetTransportSocket())})
	}
	return out
}

func (c *compiler) socket(s *corev3.TransportSocket) Socket {
	if s == nil {
		return Socket{}
	}
	out := Socket{Kind: socketKindIn(c.product, s.GetName()), Name: s.GetName(), Config: extensionAny(s.GetTypedConfig())}
	if free, ok := untyped(s.GetTypedConfig()); ok {
		out.Untyped, out.Config = free, Any{}
	}
	if out.Kind == TLSSocket {
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

func tlsContext(s *corev3.TransportSocket) *TLS {
	t := upstreamTLS(s)
	return &TLS{
		SNI:                  t.GetSni(),
		AutoHostSNI:          t.GetAutoHostSni(),
		AutoSNISANValidation: t.GetAutoSniSanValidation(),
		AllowRenegotiation:   t.GetAllowRenegotiation(),
		MaxSessionKeys:       u32(t.GetMaxSessionKeys(), 1),
		EnforceRSAKeyUsage:   boolean(t.GetEnforceRsaKeyUsage(), true),
		TLSCommon:            tlsCommon(t.GetCommonTlsContext()),
		Unread:               unread(t),
	}
}

func tlsCommon(t *tlsv3.CommonTlsContext) TLSCommon {
	p := t.GetTlsParams()
	out := TLSCommon{
		MinVersion:          TLSVersion(p.GetTlsMinimumProtocolVersion()),
		MaxVersion:          TLSVersion(p.GetTlsMaximumProtocolVersion()),
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

func compileCertificate(c *tlsv3.TlsCertificate) Certificate {
	return Certificate{
		Chain:              data(c.GetCertificateChain()),
		PrivateKey:         data(c.GetPrivateKey()),
		PKCS12:             data(c.GetPkcs12()),
		Password:           data(c.GetPassword()),
		OCSPStaple:         data(c.GetOcspStaple()),
		PrivateKeyProvider: c.GetPrivateKeyProvider().GetProviderName(),
		WatchedDirectory:   c.GetWatchedDirectory().GetPath(),
	}
}

func secret(s *tlsv3.SdsSecretConfig) *SecretSource {
	if s == nil {
		return nil
	}
	out := &SecretSource{Name: s.GetName()}
	if s.GetSdsConfig() != nil {
		source := configSource(s.GetSdsConfig())
		out.Source = &source
	}
	return out
}

func data(d *corev3.DataSource) Data {
	switch s := d.GetSpecifier().(type) {
	case *corev3.DataSource_Filename:
		return Data{Kind: DataFile, Name: s.Filename}
	case *corev3.DataSource_InlineBytes:
		return Data{Kind: DataInline, Inline: string(s.InlineBytes)}
	case *corev3.DataSource_InlineString:
		return Data{Kind: DataInline, Inline: s.InlineString}
	case *corev3.DataSource_EnvironmentVariable:
		return Data{Kind: DataEnvironment, Name: s.EnvironmentVariable}
	}
	return Data{}
}

func validation(v *tlsv3.CertificateValidationContext) *Validation {
	if v == nil {
		return nil
	}
	out := &Validation{
		TrustedCA:        data(v.GetTrustedCa()),
		CRL:              data(v.GetCrl()),
		CRLOfLeafOnly:    v.GetOnlyVerifyLeafCertCrl(),
		SystemRoots:      v.GetSystemRootCerts() != nil,
		WatchedDirectory: v.GetWatchedDirectory().GetPath(),
		SPKI:             texts(v.GetVerifyCertificateSpki()),
		Hashes:           texts(v.GetVerifyCertificateHash()),
		AllowExpired:     v.GetAllowExpiredCertificate(),
		AcceptUntrusted:  v.GetTrustChainVerification() == tlsv3.CertificateValidationContext_ACCEPT_UNTRUSTED,
		MaxVerifyDepth:   u32(v.GetMaxVerifyDepth(), defaultVerifyDepth),
	}
	for _, m := range v.GetMatchTypedSubjectAltNames() {
		out.SANs = append(out.SANs, SAN{Type: SANType(m.GetSanType()), Matcher: stringMatcher(m.GetMatcher())})
	}
	if len(out.SANs) == 0 { // the untyped list counts only without the typed one
		out.UntypedSANs = len(v.GetMatchSubjectAltNames()) > 0
		for _, m := range v.GetMatchSubjectAltNames() {
			out.SANs = append(out.SANs, SAN{Matcher: stringMatcher(m)})
		}
	}
	return out
}

func configSource(s *corev3.ConfigSource) ConfigSource {
	out := ConfigSource{InitialFetchTimeout: timer(s.GetInitialFetchTimeout(), defaultFetchTimeout)}
	switch k := s.GetConfigSourceSpecifier().(type) {
	case *corev3.ConfigSource_Path:
		out.Kind, out.Path = SourcePath, k.Path
	case *corev3.ConfigSource_PathConfigSource:
		out.Kind, out.Path = SourcePath, k.PathConfigSource.GetPath()
		out.WatchedDirectory = k.PathConfigSource.GetWatchedDirectory().GetPath()
	case *corev3.ConfigSource_ApiConfigSource:
		out.Kind, out.API = SourceAPI, apiSource(k.ApiConfigSource)
	case *corev3.ConfigSource_Ads:
		out.Kind = SourceADS
	case *corev3.ConfigSource_Self:
		out.Kind = SourceSelf
	}
	return out
}

func apiSource(a *corev3.ApiConfigSource) *APISource {
	out := &APISource{
		ClusterNames:              texts(a.GetClusterNames()),
		RefreshDelay:              timer(a.GetRefreshDelay(), 0),
		RequestTimeout:            timer(a.GetRequestTimeout(), defaultRequestTimeout),
		SetNodeOnFirstMessageOnly: a.GetSetNodeOnFirstMessageOnly(),
	}
	switch a.GetApiType() {
	case corev3.ApiConfigSource_REST:
		out.Type = APIREST
	case corev3.ApiConfigSource_GRPC:
		out.Type = APIGRPC
	case corev3.ApiConfigSource_DELTA_GRPC:
		out.Type = APIDeltaGRPC
	case corev3.ApiConfigSource_AGGREGATED_GRPC:
		out.Type = APIAggregatedGRPC
	case corev3.ApiConfigSource_AGGREGATED_DELTA_GRPC:
		out.Type = APIAggregatedDeltaGRPC
	}
	for _, g := range a.GetGrpcServices() {
		out.GRPC = append(out.GRPC, grpcService(g))
	}
	if r := a.GetRateLimitSettings(); r != nil {
		out.RateLimit = &RateLimit{MaxTokens: u32(r.GetMaxTokens(), 100), FillRate: 10}
		if r.GetFillRate() != nil {
			out.RateLimit.FillRate = r.GetFillRate().GetValue()
		}
	}
	return out
}

func grpcService(g *corev3.GrpcService) GRPCService {
	uri := g.GetGoogleGrpc()
	out := GRPCService{
		ClusterName: g.GetEnvoyGrpc().GetClusterName(), Authority: g.GetEnvoyGrpc().GetAuthority(),
		TargetURI: uri.GetTargetUri(), StatPrefix: uri.GetStatPrefix(),
		Timeout:         timer(g.GetTimeout(), 0),
		MaxReceiveBytes: u32(g.GetEnvoyGrpc().GetMaxReceiveMessageLength(), 0),
		Credentials: uri.GetChannelCredentials() != nil || len(uri.GetChannelCredentialsPlugin()) > 0 ||
			len(uri.GetCallCredentials()) > 0 || len(uri.GetCallCredentialsPlugin()) > 0 || uri.GetCredentialsFactoryName() != "",
	}
	for _, h := range g.GetInitialMetadata() {
		add := HeaderToAdd{Name: h.GetKey(), Value: h.GetValue()}
		if add.Value == "" {
			add.Value = string(h.GetRawValue())
		}
		out.Metadata = append(out.Metadata, add)
	}
	retry := g.GetEnvoyGrpc().GetRetryPolicy()
	if retry == nil {
		retry = g.GetRetryPolicy()
	}
	if b := retry.GetRetryBackOff(); b != nil {
		out.RetryBase = timer(b.GetBaseInterval(), 0)
		out.RetryMax = timer(b.GetMaxInterval(), 10*out.RetryBase)
	}
	return out
}
