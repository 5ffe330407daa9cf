package server

import (
	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/bootstrap"
	"github.com/statsd-admin/statsd-admin/server/accesslog"
	"github.com/statsd-admin/statsd-admin/store"
)

// accessLogs returns the access logs of a file.
func accessLogs(c *bootstrap.Config, boot Boot) []accesslog.Config {
	var out []accesslog.Config
	if c.Admin.Address.IsZero() {
		return nil
	}
	for _, l := range c.Admin.AccessLog {
		out = append(out, accesslog.Config{
			Path: l.Path, Format: l.Format, JSON: l.JSON, Typed: l.Typed, OmitEmpty: l.OmitEmpty, HeaderPrefix: headerPrefix(c, boot),
			FlushInterval: boot.CommandLine.FileFlushInterval, FlushBytes: int(boot.CommandLine.FileFlushMinSize) << 10,
		})
	}
	return out
}

// checkAccessLogs reports the formats that are none, with their places in c.
func checkAccessLogs(c *bootstrap.Config, logs []accesslog.Config) error {
	var wrong bootstrap.Errors
	for i, l := range logs {
		if err := accesslog.Check(l); err != nil {
			wrong.List = append(wrong.List, c.Admin.AccessLog[i].Source.Error(err))
		}
	}
	if len(wrong.List) == 0 {
		return nil
	}
	return &wrong
}

// openAccessLogs opens the files.
func (s *Server) openAccessLogs() error {
	for _, cfg := range s.cfg.AccessLogs {
		opened, err := accesslog.New(cfg)
		if err != nil {
			return err
		}
		s.access = append(s.access, opened)
	}
	if len(s.access) > 0 {
		sc := s.store.Scope("filesystem")
		s.lost.writes, s.lost.lines = sc.Counter("write_failed"), sc.Counter("write_dropped")
	}
	return nil
}

// lostLines is what access logs have lost. It is for the goroutine that flushes.
type lostLines struct {
	writes, lines *store.Counter // writes that failed, and lines that were dropped before; nil without access logs
	losing        bool           // since the last look

	writesSeen, linesSeen uint64 // at the last look
}

// refreshLost counts what access logs have lost since the last look, and says
// when that begins: else nobody would know before the server ends.
func (s *Server) refreshLost() {
	if len(s.access) == 0 {
		return
	}
	var writes, lines uint64
	for _, l := range s.access {
		writes, lines = writes+l.Failed(), lines+l.Dropped()
	}
	writes, lines = writes-s.lost.writesSeen, lines-s.lost.linesSeen
	s.lost.writesSeen, s.lost.linesSeen = s.lost.writesSeen+writes, s.lost.linesSeen+lines
	s.lost.writes.Add(writes)
	s.lost.lines.Add(lines)
	losing := writes+lines > 0
	if losing && !s.lost.losing {
		s.log.Warn("access logs lose lines", "failed writes", writes, "dropped lines", lines)
	}
	s.lost.losing = losing
}

// logAccess tells the access logs about a request.
func (s *Server) logAccess(a admin.Access) {
	e := accesslog.Entry{
		Start: a.Time, Duration: a.Duration, Method: a.Method, Target: a.Target, Authority: a.Host,
		Scheme: "http", Protocol: a.Protocol, Status: a.Status, Remote: a.Peer, Principal: a.Principal.Name,
		BytesReceived: uint64(max(a.Received, 0)), BytesSent: uint64(max(a.Sent, 0)),
		RequestHeader: a.RequestHeader, ResponseHeader: a.ResponseHeader,
	}
	if a.TLS {
		e.Scheme = "https"
	}
	if a.Err != nil {
		e.Flags = "DC"
	}
	for _, l := range s.access {
		l.Log(&e)
	}
}
