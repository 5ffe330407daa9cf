package admin

import (
	"bufio"
	"crypto/tls"
	"errors"
	"net"
	"slices"
	"strings"
	"time"
)

// secured returns the server's TLS settings based on the user's, or nil without TLS.
// It offers only HTTP/1.1 and at least TLS 1.2, also in settings that depend on the
// client.
func secured(cfg *tls.Config) *tls.Config {
	if cfg == nil {
		return nil
	}
	cfg = cfg.Clone()
	cfg.NextProtos = []string{"http/1.1"}
	cfg.MinVersion = max(cfg.MinVersion, tls.VersionTLS12)
	if choose := cfg.GetConfigForClient; choose != nil {
		cfg.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			one, err := choose(hello)
			if err != nil {
				return nil, err
			}
			return secured(one), nil
		}
	}
	return cfg
}

// wrap returns the connection to serve for nc, which was accepted at p.
func (s *Server) wrap(nc net.Conn, p listenerKind) *conn {
	c := &conn{Conn: nc, below: nc, listener: p, peer: peerOf(nc)}
	if s.tls != nil && !p.unix {
		c.tls = tls.Server(nc, s.tls)
		c.Conn, c.out = c.tls, bufio.NewWriterSize(c.tls, recordBytes)
	} else if t, ok := nc.(*tls.Conn); ok { // of a listener of the program
		c.below = t.NetConn()
	}
	return c
}

// recordBytes is the payload size of a TLS record.
const recordBytes = 16 << 10

// greet prepares a connection for requests: it completes the TLS handshake within the
// read timeout and records the client's identity. It reports false if the connection
// is not to be served.
func (s *Server) greet(c *conn) bool {
	if c.tls == nil {
		if uid, gid, ok := peerUser(c.Conn); ok {
			c.principal = s.auth.peer(uid, gid)
		}
		return true
	}
	if s.limits.ReadTimeout > 0 {
		_ = c.below.SetDeadline(time.Now().Add(s.limits.ReadTimeout)) // of a dead connection, which the handshake notices
	}
	if err := c.tls.Handshake(); err != nil {
		s.metrics.handshakeErrors.Inc()
		s.logger.Debug("TLS handshake failed", "peer", peerName(c), "error", err)
		s.answerPlain(c, err)
		c.cut()
		return false
	}
	s.metrics.handshakes.Inc()
	_ = c.below.SetDeadline(time.Time{})
	if chains := c.tls.ConnectionState().VerifiedChains; len(chains) > 0 {
		c.principal = s.auth.certificate(chains[0][0])
	}
	return true
}

// answerPlain answers a client that sent HTTP without TLS.
func (s *Server) answerPlain(c *conn, err error) {
	var header tls.RecordHeaderError
	if !errors.As(err, &header) || !looksLikeHTTP(header.RecordHeader) {
		return
	}
	plain := &conn{Conn: c.below, below: c.below, listener: c.listener, peer: c.peer, linger: true}
	r := &Request{proto: "HTTP/1.1", peer: peerName(c), from: c.peer, listener: c.listener, closing: s.session()}
	_, _ = s.respond(s.exchange(plain, r), r, &refusal{400, "this port speaks TLS: use https\n"}, false, s.now())
	_ = plain.Close()
}

// looksLikeHTTP reports whether the first bytes, which should be a TLS record, are
// the start of an HTTP request.
func looksLikeHTTP(head [5]byte) bool {
	methods := []string{"GET /", "HEAD ", "POST ", "PUT /", "DELET", "PATCH", "OPTIO"}
	return slices.Contains(methods, strings.ToUpper(string(head[:])))
}
