package server

import (
	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/bootstrap"
	"github.com/statsd-admin/statsd-admin/server/accesslog"
	"github.com/statsd-admin/statsd-admin/store"
)

// accessLogs returns the access logs of a file. The error has the places of
// formats and filters that are wrong.
func accessLogs(c *bootstrap.Config, boot Boot) ([]accesslog.Config, error) {
	if c.Admin.Address.IsZero() {
		return nil, nil
	}
	var out []accesslog.Config
	var wrong bootstrap.Errors
	for _, l := range c.Admin.AccessLog {
		cfg := accesslog.Config{
			Path: l.Path, Format: l.Format, JSON: l.JSON, Typed: l.Typed, OmitEmpty: l.OmitEmpty, HeaderPrefix: headerPrefix(c, boot),
			FlushInterval: boot.CommandLine.FileFlushInterval, FlushBytes: int(boot.CommandLine.FileFlushMinSize) << 10,
		}
		var err error
		if l.Filter != nil {
			cfg.Filter, err = accessFilter(l.Filter)
		}
		if err == nil {
			err = accesslog.Check(cfg)
		}
		if err != nil {
			wrong.List = append(wrong.List, l.Source.Error(err))
		}
		out = append(out, cfg)
	}
	if len(wrong.List) > 0 {
		return nil, &wrong
	}
	return out, nil
}

func accessFilter(f *bootstrap.AccessFilter) (out accesslog.Filter, err error) {
	out.Status, out.Duration = accessComparison(f.Status), accessComparison(f.Duration)
	if h := f.Header; h != nil {
		out.Header = &accesslog.HeaderTest{Name: h.Name, Absent: h.Absent, Invert: h.Invert, MissingIsEmpty: h.MissingIsEmpty}
		if h.Match != nil {
			m, err := matcher(*h.Match)
			if err != nil {
				return out, err
			}
			out.Header.Match = m.Match
		}
	}
	if out.And, err = accessFilters(f.And); err != nil {
		return out, err
	}
	out.Or, err = accessFilters(f.Or)
	return out, err
}

func accessFilters(list []bootstrap.AccessFilter) ([]accesslog.Filter, error) {
	var out []accesslog.Filter
	for i := range list {
		f, err := accessFilter(&list[i])
		if err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	return out, nil
}

func accessComparison(c *bootstrap.Comparison) *accesslog.Comparison {
	if c == nil {
		return nil
	}
	op := map[bootstrap.CompareOp]accesslog.Op{
		bootstrap.CompareEqual: accesslog.Equal, bootstrap.CompareNotEqual: accesslog.NotEqual,
		bootstrap.CompareGreaterOrEqual: accesslog.GreaterOrEqual, bootstrap.CompareLessOrEqual: accesslog.LessOrEqual,
	}[c.Op]
	return &accesslog.Comparison{Op: op, Value: uint64(c.Value), RuntimeKey: c.RuntimeKey}
}

// openAccessLogs opens the files.
func (s *Server) openAccessLogs() error {
	for _, cfg := range s.cfg.AccessLogs {
		if cfg.Runtime == nil {
			cfg.Runtime = func(key string, byDefault uint64) uint64 { return s.runtime.Snapshot().Int(key, byDefault) }
		}
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
