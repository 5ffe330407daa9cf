package config

// Sockets are the transport sockets of a cluster.
type Sockets struct {
	Matches []SocketMatch // tried in order; the first that fits the endpoint is used
	Default Socket        // used when none fits
	Matcher bool          // there is a transport_socket_matcher, which is not supported
}

// SocketMatch selects a socket by the metadata of endpoints.
type SocketMatch struct {
	Name   string         // used in statistics
	Match  map[string]any // keys and values the endpoint must have; empty fits all
	Socket Socket
}

// SocketKind is the kind of a transport socket.
type SocketKind uint8

// The kinds of transport sockets.
const (
	RawBuffer SocketKind = iota // plain text
	TLSSocket
	OtherSocket // an extension
)

// Socket is a transport socket.
type Socket struct {
	Kind    SocketKind
	Name    string         // as configured; empty for the default, plain text
	TLS     *TLS           // set if Kind is TLSSocket
	Config  Any            // typed configuration as received
	Untyped map[string]any // free-form configuration of the v2 form
}

// TLSVersion is a version of TLS.
type TLSVersion uint8

// The versions of TLS.
const (
	TLSAuto TLSVersion = iota
	TLS10
	TLS11
	TLS12
	TLS13
)

// TLS is the client side of a TLS connection.
type TLS struct {
	SNI                  string
	AutoHostSNI          bool
	AutoSNISANValidation bool
	AllowRenegotiation   bool
	MaxSessionKeys       uint32 // default 1
	EnforceRSAKeyUsage   bool
	TLSCommon
	// Unread lists the paths of the configured fields below the context that have no
	// counterpart here, so that callers can reject them.
	Unread []string
}

// TLSCommon holds the settings that both sides of a TLS connection have.
type TLSCommon struct {
	MinVersion, MaxVersion TLSVersion
	CipherSuites           []string
	Curves                 []string
	SignatureAlgorithms    []string
	ALPN                   []string
	Certificates           []Certificate
	CertificateSecrets     []SecretSource
	Validation             *Validation   // nil disables verification
	ValidationSecret       *SecretSource // secret with settings on top of Validation
}

// SecretSource names a secret that is delivered later.
type SecretSource struct {
	Name   string
	Source *ConfigSource // nil for a static secret
}

// DataKind is the kind of a data source.
type DataKind uint8

// The kinds of data sources.
const (
	NoData DataKind = iota
	DataFile
	DataInline
	DataEnvironment
)

// Data is a data source.
type Data struct {
	Kind   DataKind
	Name   string // file name or name of the environment variable
	Inline string // the bytes; may be secret, never printed
}

// String describes the source without its data.
func (d Data) String() string {
	switch d.Kind {
	case DataFile:
		return d.Name
	case DataInline:
		return "<inline>"
	case DataEnvironment:
		return "$" + d.Name
	}
	return ""
}

// Certificate is a certificate chain with its key.
type Certificate struct {
	Chain              Data
	PrivateKey         Data
	PKCS12             Data
	Password           Data
	OCSPStaple         Data
	PrivateKeyProvider string // empty if there is none
	WatchedDirectory   string
}

// SAN is a check of one kind of alternative name.
type SAN struct {
	Type    SANType
	Matcher StringMatcher
}

// SANType is the kind of an alternative name.
type SANType uint8

// The kinds of alternative names.
const (
	AnySAN SANType = iota
	EmailSAN
	DNSSAN
	URISAN
	IPSAN
	OtherNameSAN
)

// Validation configures the verification of the peer's certificate.
type Validation struct {
	TrustedCA        Data
	CRL              Data
	CRLOfLeafOnly    bool // the list need not cover the authorities
	SystemRoots      bool
	WatchedDirectory string
	SPKI             []string
	Hashes           []string
	SANs             []SAN
	UntypedSANs      bool // SANs are names without a type, which the resource calls deprecated
	AllowExpired     bool
	AcceptUntrusted  bool
	MaxVerifyDepth   uint32 // default DefaultVerifyDepth
}

// DefaultVerifyDepth is the maximum length of a certificate chain unless the
// configuration sets another one.
const DefaultVerifyDepth = 100
