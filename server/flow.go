package server

// logFlow logs how received stats are treated and where stats are sent.
func (s *Server) logFlow() {
	if s.statsd != nil {
		unit := "ms"
		if s.store.Naming().NetworkSeconds {
			unit = "s"
		}
		m := s.statsd.Mapping()
		args := []any{"mapping_rules", len(m.Rules)}
		if source := s.cfg.StatsDRules; source != nil && source.File != "" {
			args = append(args, "file", source.File)
		}
		if m.DropUnmatched {
			args = append(args, "unmatched", "drop")
		}
		s.log.Info("statsd input is configured", append(args, "timer_unit", unit)...)
	}
	for _, sink := range s.flusher.Sinks() {
		args := []any{"name", sink.Name}
		if d := sink.Delivery; d != nil {
			args = append(args, "kind", d.Kind, "target", d.Target)
		}
		if sink.Interval > 0 {
			args = append(args, "interval", sink.Interval)
		}
		s.log.Info("stats are sent to a sink", args...)
	}
}
