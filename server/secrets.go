package server

import (
	"iter"
	"time"

	"github.com/statsd-admin/statsd-admin/server/configdump"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/config/decode"
	"github.com/statsd-admin/statsd-admin/upstream/xds"
)

// staticSecrets returns what secrets hold.
func staticSecrets(list []*decode.ParsedSecret) (out []*config.Secret) {
	for _, s := range list {
		out = append(out, s.Secret)
	}
	return out
}

// dumpSecrets shows the static secrets and those that are followed. The ones of which
// nothing good came so far are the warming ones.
func dumpSecrets(static []*decode.ParsedSecret, read time.Time, followed iter.Seq[*xds.SecretState]) configdump.Section {
	var given, active, warming []configdump.Secret
	for _, s := range static {
		given = append(given, configdump.Secret{Name: s.Secret.Name, Message: s.Any(), Updated: read})
	}
	for s := range followed {
		shown := configdump.Secret{Name: s.Name, Version: s.Version, Message: s.Message, Updated: s.Updated}
		if f := s.Failure; f != nil {
			shown.Failure = &configdump.Failure{Message: f.Config, At: f.Attempt, Details: f.Details, Version: f.Version}
		}
		if s.Message != nil {
			active = append(active, shown)
		} else {
			warming = append(warming, shown)
		}
	}
	return configdump.Secrets(given, active, warming)
}
