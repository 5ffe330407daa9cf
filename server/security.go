package server

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/server/certs"
)

// globalLimitKey is the runtime key of the limit of connections that the server
// accepts, including connections of the admin port.
const globalLimitKey = "overload.global_downstream_max_connections"

// secureAdmin adds tokens and certificates from files to the settings of the admin
// port.
func (s *Server) secureAdmin(cfg *admin.Config) error {
	if files := s.cfg.AdminTLS; files != nil {
		t, err := s.loadTLS(*files)
		if err != nil {
			return err
		}
		cfg.TLS = t.Config()
	}
	if cfg.Admit == nil && !s.cfg.IgnoreGlobalLimit {
		cfg.Admit = s.admitAdmin
	}
	if s.cfg.AdminTokens == "" {
		return nil
	}
	auth := admin.Auth{}
	if cfg.Auth != nil {
		auth = *cfg.Auth
	}
	s.tokens = &tokenFile{path: s.cfg.AdminTokens, fixed: auth.Tokens.List(), tokens: admin.NewTokens()}
	auth.Tokens = s.tokens.tokens
	cfg.Auth = &auth
	_, err := s.tokens.read()
	return s.placed(err, s.tokens.path)
}

// loadTLS loads certificates, which are reloaded when their files change.
func (s *Server) loadTLS(files certs.Files) (*certs.Server, error) {
	t, err := certs.Load(s.certs, files)
	if err != nil {
		return nil, s.placed(err, files.Chain, files.Key, files.ClientCA, files.OCSPStaple)
	}
	s.tls = append(s.tls, t)
	return t, nil
}

// placed prefixes an error about files with the position in the configuration of the
// first file that it mentions.
func (s *Server) placed(err error, files ...string) error {
	if err == nil || s.cfg.FilePosition == nil {
		return err
	}
	for _, file := range files {
		if position := s.cfg.FilePosition(file); position != "" && strings.Contains(err.Error(), file) {
			return fmt.Errorf("%s: %w", position, err)
		}
	}
	return err
}

// admitAdmin reports whether another connection is within the limit.
func (s *Server) admitAdmin(open int) bool {
	return uint64(open)+s.connections() < s.runtime.Uint(globalLimitKey, math.MaxUint64)
}

// tokenFile is a file of tokens that is reloaded when it changes.
type tokenFile struct {
	path   string
	fixed  []admin.Token // from the configuration
	tokens *admin.Tokens

	loading sync.Mutex // held by read, so that what is read later is in use
}

// read reads the file and reports whether the tokens changed.
func (f *tokenFile) read() (changed bool, err error) {
	f.loading.Lock()
	defer f.loading.Unlock()
	list, err := admin.ReadTokens(f.path)
	if err != nil {
		return false, err
	}
	list = slices.Concat(f.fixed, list)
	changed = !slices.Equal(list, f.tokens.List())
	f.tokens.Set(list)
	return changed, nil
}

// reloadSecrets reloads tokens and certificates. If a file is invalid, the error is
// logged and the previous contents stay in use.
func (s *Server) reloadSecrets() {
	if s.tokens != nil {
		switch changed, err := s.tokens.read(); {
		case err != nil:
			s.log.Error("cannot reload tokens; keeping the current ones", "error", oneLine(err))
		case changed:
			s.log.Info("tokens reloaded", "file", s.tokens.path)
		}
	}
	for _, t := range s.tls {
		if err := t.Reload(); err != nil {
			s.log.Error("cannot reload certificates; keeping the current ones", "error", oneLine(err))
		}
	}
}

// secretFiles returns the names of the files that reloadSecrets reads.
func (s *Server) secretFiles() []string {
	var names []string
	if s.tokens != nil {
		names = append(names, s.tokens.path)
	}
	for _, t := range s.tls {
		f := t.Files()
		names = append(names, f.Chain, f.Key, f.ClientCA, f.OCSPStaple)
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == "" })
}
