package certs

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"sync/atomic"

	"github.com/statsd-admin/statsd-admin/internal/boundedfile"
)

// Files name the material of a TLS server, all in PEM form.
type Files struct {
	Chain    string // own certificate, then intermediate ones
	Key      string // private key of the first
	ClientCA string // authorities that must have signed a client's certificate; empty: none is asked for
	// OptionalClient lets clients in that show no certificate.
	OptionalClient bool
	// OCSPStaple is a response in DER form about the own certificate, which
	// clients are shown. Empty: none.
	OCSPStaple string
	// MinVersion is the lowest version that is spoken; default
	// tls.VersionTLS12.
	MinVersion uint16
}

// Server is the TLS side of a listener. Its files can be loaded again while
// connections are open. Make it with [Registry.LoadServer].
type Server struct {
	files   Files
	handle  *Handle
	current atomic.Pointer[tls.Config]
}

// LoadServer reads the files and registers what is in them.
func (r *Registry) LoadServer(files Files) (*Server, error) {
	config, context, err := loadServer(files)
	if err != nil {
		return nil, err
	}
	s := &Server{files: files, handle: r.Add(context)}
	s.current.Store(config)
	return s, nil
}

// Config returns the settings for a listener: with the material that is current
// when a connection begins.
func (s *Server) Config() *tls.Config {
	now := s.current.Load()
	return &tls.Config{
		MinVersion:         now.MinVersion,
		ClientAuth:         now.ClientAuth,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return s.current.Load(), nil },
	}
}

// Reload reads the files again. New connections use them; open ones go on. On
// an error the previous material stays.
func (s *Server) Reload() error {
	config, context, err := loadServer(s.files)
	if err != nil {
		return err
	}
	s.current.Store(config)
	s.handle.Update(context)
	return nil
}

// Files returns the names of the files.
func (s *Server) Files() Files { return s.files }

// Close takes the material out of the registry. Connections are not touched.
func (s *Server) Close() { s.handle.Remove() }

func loadServer(files Files) (*tls.Config, Context, error) {
	var c Context
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
		if c.Chain[0].OCSP, err = parseOCSP(files.OCSPStaple, pair.OCSPStaple, pair.Leaf); err != nil {
			return nil, c, err
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
	if c.CACerts, err = Parse(files.ClientCA, authorities); err != nil {
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
