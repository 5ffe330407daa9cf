package certs

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/statsd-admin/statsd-admin/certinfo"
	"github.com/statsd-admin/statsd-admin/internal/boundedfile"
)

// Files names the files of a TLS server. All but OCSPStaple are in PEM form.
type Files struct {
	Chain string // the server's certificate, then intermediate ones
	Key   string // its private key
	// ClientCA holds the authorities that sign client certificates. If empty,
	// clients are not asked for a certificate.
	ClientCA string
	// OptionalClient also accepts clients without a certificate.
	OptionalClient bool
	// OCSPStaple is an OCSP response in DER form that is stapled to the
	// handshake. Empty staples none.
	OCSPStaple string
	// MinVersion is the lowest TLS version; default tls.VersionTLS12.
	MinVersion uint16
}

// Server is the TLS side of a listener. Its files can be reloaded while
// connections are open. Create it with [Load].
type Server struct {
	files   Files
	handle  *certinfo.Handle
	current atomic.Pointer[tls.Config]
	loading sync.Mutex // held by Reload, so that what is read later is in use
}

// Load reads the files and adds their certificates to registry, which can be nil.
func Load(registry *certinfo.Registry, files Files) (*Server, error) {
	config, context, err := loadServer(files)
	if err != nil {
		return nil, err
	}
	s := &Server{files: files, handle: registry.Add(context)}
	s.current.Store(config)
	return s, nil
}

// Config returns the settings for a listener. Each connection uses the
// certificates that are current when it starts.
func (s *Server) Config() *tls.Config {
	now := s.current.Load()
	return &tls.Config{
		MinVersion:         now.MinVersion,
		ClientAuth:         now.ClientAuth,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return s.current.Load(), nil },
	}
}

// Reload reads the files again. Open connections are not affected. On error, the
// previous certificates stay in use.
func (s *Server) Reload() error {
	s.loading.Lock()
	defer s.loading.Unlock()
	config, context, err := loadServer(s.files)
	if err != nil {
		return err
	}
	s.current.Store(config)
	s.handle.Update(context)
	return nil
}

// Expires returns when the current certificate expires.
func (s *Server) Expires() time.Time { return s.current.Load().Certificates[0].Leaf.NotAfter }

// Files returns the names of the files.
func (s *Server) Files() Files { return s.files }

func loadServer(files Files) (*tls.Config, certinfo.Context, error) {
	var c certinfo.Context
	chain, err := readFile(files.Chain)
	if err != nil {
		return nil, c, err
	}
	key, err := readFile(files.Key)
	if err != nil {
		return nil, c, err
	}
	if c.Chain, err = Parse(files.Chain, chain); err != nil {
		return nil, c, err
	}
	pair, err := tls.X509KeyPair(chain, key)
	if err != nil {
		return nil, c, fmt.Errorf("certs: %q with key %q: %w", files.Chain, files.Key, err)
	}
	if files.OCSPStaple != "" {
		if pair.OCSPStaple, err = readFile(files.OCSPStaple); err != nil {
			return nil, c, err
		}
		if c.Chain[0].OCSP, err = certinfo.ParseStaple(pair.OCSPStaple, pair.Leaf); err != nil {
			return nil, c, fmt.Errorf("certs: %q: %w", files.OCSPStaple, err)
		}
	}
	config := &tls.Config{MinVersion: max(files.MinVersion, tls.VersionTLS12), Certificates: []tls.Certificate{pair}}
	if files.ClientCA == "" {
		return config, c, nil
	}
	authorities, err := readFile(files.ClientCA)
	if err != nil {
		return nil, c, err
	}
	if c.CA, err = Parse(files.ClientCA, authorities); err != nil {
		return nil, c, err
	}
	config.ClientCAs = x509.NewCertPool()
	config.ClientCAs.AppendCertsFromPEM(authorities)
	config.ClientAuth = tls.RequireAndVerifyClientCert
	if files.OptionalClient {
		config.ClientAuth = tls.VerifyClientCertIfGiven
	}
	return config, c, nil
}

func readFile(path string) ([]byte, error) {
	data, err := boundedfile.Read(path, maxPEMBytes)
	if err != nil {
		return nil, fmt.Errorf("certs: %w", err)
	}
	return data, nil
}
