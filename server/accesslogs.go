package server

import (
	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/server/accesslog"
	"github.com/statsd-admin/statsd-admin/store"
)

func (s *Server) openAccessLogs() error {
	for _, cfg := range s.cfg.AccessLogs {
		if cfg.Runtime == nil {
			cfg.Runtime = s.runtime
		}
		opened, err := accesslog.New(cfg)
		if err != nil {
			return err
		}
		s.access = append(s.access, opened)
	}
	if len(s.access) > 0 {
		sc := s.store.Own().Scope("filesystem")
		sc.Help(map[string]string{"write_failed": "Failed writes of access logs.", "write_dropped": "Lines that access logs lost."})
		s.lost.writes, s.lost.lines = sc.Counter("write_failed"), sc.Counter("write_dropped")
	}
	return nil
}

// lostLines tracks the lines lost by access logs. Only the flushing goroutine uses
// it.
type lostLines struct {
	writes, lines *store.Counter // failed and dropped lines; nil without access logs
	losing        bool           // whether lines were lost at the last refresh

	writesSeen, linesSeen uint64 // totals at the last refresh
}

// refreshLost counts the lines that access logs lost since the last call, and logs a
// warning when the loss begins.
func (s *Server) refreshLost() {
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
		s.log.Warn("access logs are losing lines", "failed_lines", writes, "dropped_lines", lines)
	}
	s.lost.losing = losing
}

// logAccess writes a request to the access logs.
func (s *Server) logAccess(a admin.Access) {
	e := accesslog.Entry{
		Start: a.Time, Duration: a.Duration, Method: a.Method, Target: a.Target, Authority: a.Host,
		Scheme: "http", Protocol: a.Protocol, Status: a.Status, Remote: a.Peer, Principal: a.Principal.Name,
		BytesReceived: uint64(a.Received), BytesSent: uint64(a.Sent),
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
