package server

import (
	"context"
	"strings"

	"github.com/statsd-admin/statsd-admin/statsd/mapping"
)

// RulesSource is where the mapping rules of the StatsD input come from.
type RulesSource struct {
	// Load returns the rules, and warnings to log. It is called by New, by
	// Reload and by the endpoint /ingest/reload, never concurrently.
	Load func() (rules *mapping.Rules, warnings []string, err error)
	// File is what Load reads, or "" if it reads no file.
	File string
	// Watch reloads the rules when File changes.
	Watch bool
}

func (s *Server) loadRules() (*mapping.Rules, error) {
	source := s.cfg.StatsDRules
	if source == nil {
		return s.cfg.StatsD.Rules, nil
	}
	if source.File != "" {
		s.rulesSeen = stamps([]string{source.File})
	}
	return s.loadedRules()
}

func (s *Server) loadedRules() (*mapping.Rules, error) {
	rules, warnings, err := s.cfg.StatsDRules.Load()
	for _, w := range warnings {
		s.loggers.Logger("config").Warn(w)
	}
	return rules, err
}

// reloadRules loads the mapping rules again. If that fails, the rules stay.
func (s *Server) reloadRules() error {
	s.rulesMu.Lock()
	defer s.rulesMu.Unlock()
	err := s.statsd.ReloadRules(s.loadedRules)
	if err != nil {
		s.log.Error("cannot reload mapping rules; keeping the current ones", "error", oneLine(err))
	} else {
		s.log.Info("mapping rules reloaded", "file", s.cfg.StatsDRules.File, "rules", len(s.statsd.Mapping().Rules))
	}
	return err
}

// oneLine returns the text of err for the log. Texts with an error on each line would be
// shown with escaped ends of lines.
func oneLine(err error) string {
	lines := strings.Split(err.Error(), "\n")
	text := lines[0]
	for _, l := range lines[1:] {
		if !strings.HasSuffix(text, ":") {
			text += ";"
		}
		text += " " + strings.TrimSpace(l)
	}
	return text
}

// hasRules reports whether there are mapping rules to reload.
func (s *Server) hasRules() bool { return s.statsd != nil && s.cfg.StatsDRules != nil }

// watchRules reloads the mapping rules when their file changes.
func (s *Server) watchRules(ctx context.Context) error {
	if !s.hasRules() || !s.cfg.StatsDRules.Watch {
		return nil
	}
	return s.watchFiles(ctx, "mapping rules", []string{s.cfg.StatsDRules.File}, s.rulesSeen, func() { _ = s.reloadRules() })
}
