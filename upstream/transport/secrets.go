package transport

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/statsd-admin/statsd-admin/upstream/config"
)

// Secrets delivers the secrets that TLS contexts name, from files and control
// planes. It must be safe for concurrent use.
type Secrets interface {
	// Check tells why a secret cannot come from where its source says; nil if it
	// can.
	Check(*config.SecretSource) error
	// Follow tells u of each version of a secret of that kind until stop is called,
	// which may be at any time and does not wait for u.
	Follow(s *config.SecretSource, k config.SecretKind, u SecretUser) (stop func())
}

// SecretUser puts a secret in force. [Secrets] calls it.
type SecretUser interface {
	// Prepare reads what a secret refers to and checks it, without changing
	// anything. What it returns puts the secret in force, for connections that are
	// made from then on. It is also to be called when files that a secret names have
	// changed.
	Prepare(*config.Secret) (commit func(), err error)
	// Answered is told once: after the first answer, good or bad, or when none came
	// in time.
	Answered()
}

// errNoSecret is wrapped by errors of connections that cannot be made because a
// secret was not delivered so far.
var errNoSecret = errors.New("was not delivered so far")

// secretID names a static secret.
type secretID struct {
	kind config.SecretKind
	name string
}

func secretsByID(list []*config.Secret) map[secretID]*config.Secret {
	out := make(map[secretID]*config.Secret, len(list))
	for _, s := range list {
		out[secretID{s.Kind, s.Name}] = s
	}
	return out
}

// slot is the place of a secret in a context.
type slot struct {
	t      *tlsContext
	source *config.SecretSource
	kind   config.SecretKind

	answered atomic.Bool
	done     func() // told of the first answer; set before it can come

	secret *config.Secret // guarded by t.loading; nil: not there yet
	stop   func()         // guarded by t.loading; nil: not followed
}

// newSlots finds the static secrets of a context and checks that the others can
// come.
func (t *tlsContext) newSlots() error {
	const certificates = ".tls_certificate_sds_secret_configs"
	if len(t.t.CertificateSecrets) > 0 && len(t.t.Certificates) > 0 {
		return fmt.Errorf("%s%s: cannot be combined with tls_certificates", t.common(), certificates)
	}
	for i := range t.t.CertificateSecrets {
		if err := t.newSlot(&t.t.CertificateSecrets[i], config.CertificateSecret, fmt.Sprintf("%s[%d]", certificates, i)); err != nil {
			return err
		}
	}
	if s := t.t.ValidationSecret; s != nil {
		field := ".validation_context_sds_secret_config"
		if t.t.Validation != nil {
			field = ".combined_validation_context" + field
		}
		return t.newSlot(s, config.ValidationSecret, field)
	}
	return nil
}

func (t *tlsContext) newSlot(source *config.SecretSource, k config.SecretKind, field string) error {
	s := &slot{t: t, source: source, kind: k}
	t.slots = append(t.slots, s)
	switch {
	case source.Source == nil:
		if s.secret = t.f.secrets[secretID{k, source.Name}]; s.secret == nil {
			return fmt.Errorf("%s%s.name: no static secret %q holds a %s", t.common(), field, source.Name, k)
		}
		s.answered.Store(true)
		return unreadSecret(s.secret)
	case t.f.c.Secrets == nil:
		return fmt.Errorf("%s%s.sds_config: nothing here delivers secrets; name a static one, files or inline data", t.common(), field)
	}
	if err := t.f.c.Secrets.Check(source); err != nil {
		return fmt.Errorf("%s%s.sds_config: %w", t.common(), field, err)
	}
	return nil
}

func unreadSecret(s *config.Secret) error {
	if len(s.Unread) > 0 {
		return fmt.Errorf("%s: not supported", secretPath(s, s.Unread[0]))
	}
	return nil
}

// secretPath is the path of a secret in error texts.
func secretPath(s *config.Secret, field string) string {
	return fmt.Sprintf("secret %q: %s", s.Name, field)
}

// follow begins to follow the secret. done is called once it was answered.
func (s *slot) follow(done func()) {
	s.done = done
	stop := s.t.f.c.Secrets.Follow(s.source, s.kind, s)
	s.t.loading.Lock()
	closed := s.t.closed
	s.stop = stop
	s.t.loading.Unlock()
	if closed {
		stop()
	}
}

// Answered implements [SecretUser].
func (s *slot) Answered() {
	if !s.answered.Swap(true) {
		s.done()
	}
}

// Prepare implements [SecretUser].
func (s *slot) Prepare(secret *config.Secret) (commit func(), err error) {
	t := s.t
	t.loading.Lock()
	defer t.loading.Unlock()
	if err := unreadSecret(secret); err != nil {
		return nil, t.named(err)
	}
	p := t.partsLocked(s, secret)
	m, err := t.read(&p)
	if err != nil {
		return nil, t.named(err)
	}
	generation := t.generation
	return func() {
		t.loading.Lock()
		defer t.loading.Unlock()
		if t.closed {
			return
		}
		s.secret = secret
		if t.generation != generation { // another secret came meanwhile
			p = t.partsLocked(nil, nil)
			if m, err = t.read(&p); err != nil {
				t.f.c.Logger.Warn("secret is not in force, what was before stays", "secret", secret.Name, "error", t.named(err).Error())
				return
			}
		}
		t.installLocked(&p, m)
		t.stats.bySecret.Inc()
	}, nil
}

func (t *tlsContext) named(err error) error {
	return fmt.Errorf("transport: cluster %q: %w", t.cluster, err)
}

// parts is what a context is made of, with the secrets that are there.
type parts struct {
	certificates []certificatePart
	validation   *config.Validation // nil: the peer is not checked
	path         string             // of validation
	missing      string             // name of a secret that is not there; empty: all are
	unchecked    bool               // it is that of validation
}

// certificatePart is a certificate with its path.
type certificatePart struct {
	*config.Certificate
	path string
}

// partsLocked returns the parts of a context as they would be with a secret in
// place of that of a slot, or as they are. t.loading is held.
func (t *tlsContext) partsLocked(over *slot, secret *config.Secret) parts {
	p := parts{validation: t.t.Validation, path: t.common() + ".validation_context"}
	if t.t.ValidationSecret != nil {
		p.path = t.common() + ".combined_validation_context.default_validation_context"
	}
	for i := range t.t.Certificates {
		p.certificates = append(p.certificates, certificatePart{&t.t.Certificates[i], fmt.Sprintf("%s.tls_certificates[%d]", t.common(), i)})
	}
	for _, s := range t.slots {
		x := s.secret
		if s == over {
			x = secret
		}
		switch {
		case x == nil:
			p.missing, p.unchecked = s.source.Name, p.unchecked || s.kind == config.ValidationSecret
		case s.kind == config.CertificateSecret:
			p.certificates = append(p.certificates, certificatePart{x.Certificate, secretPath(x, "tls_certificate")})
		default:
			p.validation, p.path = t.t.Validation.Merge(x.Validation), secretPath(x, "validation_context")
		}
	}
	return p
}

// await returns an error while a secret of the socket is missing, and counts it.
func (s *socket) await() error {
	if s.tls == nil || s.tls.current.Load() != nil {
		return nil
	}
	t := s.tls
	t.stats.notReady.Inc()
	t.loading.Lock()
	p := t.partsLocked(nil, nil)
	t.loading.Unlock()
	return fmt.Errorf("secret %q %w", p.missing, errNoSecret)
}

// contexts calls yield with each TLS context of the dialer.
func (d *Dialer) contexts(yield func(*tlsContext)) {
	for i := range d.matches {
		if s := d.matches[i].socket; s != nil && s.tls != nil {
			yield(s.tls)
		}
	}
	if s := d.fallback.socket; s != nil && s.tls != nil {
		yield(s.tls)
	}
}

// followed returns the places of the secrets that are not static.
func (d *Dialer) followed() (list []*slot) {
	d.contexts(func(t *tlsContext) {
		for _, s := range t.slots {
			if s.source.Source != nil {
				list = append(list, s)
			}
		}
	})
	return list
}

// Follow begins to follow the secrets that the sockets name. It is to be called
// once. The function ready is called once, from any goroutine, when all of them had
// a first answer, good or bad, or when that did not come in time; at once if there
// are none. Until a secret is there, connections that need it fail.
func (d *Dialer) Follow(ready func()) {
	list := d.followed()
	var left atomic.Int64
	left.Store(int64(len(list)) + 1)
	done := func() {
		if left.Add(-1) == 0 {
			ready()
		}
	}
	for _, s := range list {
		s.follow(sync.OnceFunc(done))
	}
	done()
}

// Awaited returns the names of the secrets that had no first answer so far, in the
// order of the configuration.
func (d *Dialer) Awaited() (names []string) {
	for _, s := range d.followed() {
		if !s.answered.Load() {
			names = append(names, s.source.Name)
		}
	}
	return names
}

// Dependent tells whether secrets come from a control plane, which is reached over
// other clusters.
func (d *Dialer) Dependent() bool {
	for _, s := range d.followed() {
		if s.source.Source.Kind != config.SourcePath {
			return true
		}
	}
	return false
}
