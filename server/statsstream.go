package server

import "github.com/statsd-admin/statsd-admin/flush/deltastream"

// makeStatsStream makes the source of /stats/stream.
func (s *Server) makeStatsStream() error {
	s.deltas = deltastream.New(deltastream.Config{Store: s.store, Clients: s.cfg.Admin.Limits.StatsStreams})
	return nil
}
