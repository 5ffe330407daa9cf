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
	// made from then on. It is also to be called, with a new [Secret], when files that
	// a secret names have changed.
	Prepare(*Secret) (commit func(), err error)
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

// Secret is a secret as it is read once for all its users of one factory: its data,
// and the files that it names as they are when the first of them needs them. Make it
// with [NewSecret]. It is safe for concurrent use.
type Secret struct {
	*config.Secret

	identity    kept[*identity]
	authorities kept[*authorities]
	revocations kept[[]*revocationList]
}

// NewSecret returns a secret of which nothing was read so far. s must not be changed
// any more.
func NewSecret(s *config.Secret) *Secret { return &Secret{Secret: s} }

// kept is what was read, for one factory: others may have other files and variables.
type kept[T any] struct {
	mu    sync.Mutex // held while it is read
	by    *Factory   // nil: nothing was
	value T
}

// get returns what was read for f, or reads it.
func (k *kept[T]) get(f *Factory, read func() (T, error)) (T, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.by == f {
		return k.value, nil
	}
	v, err := read()
	if err == nil {
		k.by, k.value = f, v
	}
	return v, err
}

// slot is the place of a secret in a context.
type slot struct {
	t      *tlsContext
	source *config.SecretSource
	kind   config.SecretKind

	answered atomic.Bool
	done     func() // told of the first answer; set before it can come

	secret  *config.Secret // guarded by t.loading; nil: not there yet
	content                // of secret; guarded by t.loading
	stop    func()         // guarded by t.loading; nil: not followed
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

// follow begins to follow the secret. done is called once, when it was answered.
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
func (s *slot) Prepare(secret *Secret) (commit func(), err error) {
	t := s.t
	if secret.Kind != s.kind {
		return nil, t.named(fmt.Errorf("secret %q holds a %s, not a %s", secret.Name, secret.Kind, s.kind))
	}
	if err := unreadSecret(secret.Secret); err != nil {
		return nil, t.named(err)
	}
	c, err := s.read(secret)
	if err != nil {
		return nil, t.named(err)
	}
	return func() {
		t.loading.Lock()
		defer t.loading.Unlock()
		if t.closed {
			return
		}
		s.secret, s.content = secret.Secret, c
		t.installLocked()
		t.stats.bySecret.Inc()
	}, nil
}

func (t *tlsContext) named(err error) error {
	return fmt.Errorf("transport: cluster %q: %w", t.cluster, err)
}

// read reads what a secret refers to.
func (s *slot) read(secret *Secret) (c content, err error) {
	if s.kind == config.CertificateSecret {
		own, err := secret.identity.get(s.t.f, func() (*identity, error) {
			return s.t.f.identity(secret.Certificate, secretPath(secret.Secret, "tls_certificate"))
		})
		return content{identities: []*identity{own}}, err
	}
	v, at := s.validation(secret.Secret), secretPath(secret.Secret, "validation_context")
	if err := s.t.checkValidation(v, at); err != nil {
		return c, err
	}
	c.trust, err = s.t.f.trust(v, at, secret)
	return c, err
}

// validation returns the checks of the peer with a secret.
func (s *slot) validation(secret *config.Secret) *config.Validation {
	return s.t.t.Validation.Merge(secret.Validation)
}

// missingLocked returns the name of a secret that is not there, empty if all are.
// t.loading is held.
func (t *tlsContext) missingLocked() (name string) {
	for _, s := range t.slots {
		if s.secret == nil {
			name = s.source.Name
		}
	}
	return name
}

// await returns an error while a secret of the socket is missing, and counts it.
func (s *socket) await() error {
	if s.tls == nil || s.tls.current.Load() != nil {
		return nil
	}
	t := s.tls
	t.loading.Lock()
	defer t.loading.Unlock()
	missing := t.missingLocked()
	if missing == "" { // it came meanwhile
		return nil
	}
	t.stats.notReady.Inc()
	return fmt.Errorf("secret %q %w", missing, errNoSecret)
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
		s.follow(done)
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
