package transport

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/statsd-admin/statsd-admin/upstream/config"
)

// Secrets delivers secrets from files and control planes to TLS contexts. It must be
// safe for concurrent use.
type Secrets interface {
	// Check returns an error if the source of a secret is unusable.
	Check(*config.SecretSource) error
	// Follow passes each version of a secret of that kind to u until stop is called.
	// stop can be called at any time and does not wait for u.
	Follow(s *config.SecretSource, k config.SecretKind, u SecretUser) (stop func())
}

// SecretUser uses a secret. [Secrets] calls it.
type SecretUser interface {
	// Prepare reads and checks the data that a secret references, without side
	// effects. The returned function activates the secret for new connections. It is
	// called again, with a new [Secret], when files of the secret have changed.
	Prepare(*Secret) (commit func(), err error)
	// Answered is called once: after the first answer, valid or not, or when the
	// timeout expires.
	Answered()
}

// errNoSecret is wrapped by errors of connections that need a secret that has not
// been delivered.
var errNoSecret = errors.New("has not been delivered yet")

// secretID identifies a static secret.
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

// Secret is a secret that is read once for all its users of one factory: its data,
// and its files as of the first use. Create it with [NewSecret]. It is safe for
// concurrent use.
type Secret struct {
	*config.Secret

	identity    kept[*identity]
	authorities kept[*authorities]
	revocations kept[[]*revocationList]
}

// NewSecret returns a secret that has not been read yet. The caller must not modify s
// afterwards.
func NewSecret(s *config.Secret) *Secret { return &Secret{Secret: s} }

// kept is the data read by one factory; others can have other files and variables.
type kept[T any] struct {
	mu    sync.Mutex // held while it is read
	by    *Factory   // nil: nothing was
	value T
}

// get returns the data for f, reading it if necessary.
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

// slot is the reference to a secret in a context.
type slot struct {
	t      *tlsContext
	source *config.SecretSource
	kind   config.SecretKind

	answered atomic.Bool
	done     func() // called after the first answer; set before it can arrive

	secret  *config.Secret // guarded by t.loading; nil: not there yet
	content                // of secret; guarded by t.loading
	stop    func()         // guarded by t.loading; nil: not followed
}

// newSlots resolves the static secrets of a context and checks the sources of the
// others.
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
		return fmt.Errorf("%s%s.sds_config: secrets from files and control planes are not supported by this program; use a static secret, files or inline data", t.common(), field)
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

// secretPath returns the path of a secret for error messages.
func secretPath(s *config.Secret, field string) string {
	return fmt.Sprintf("secret %q: %s", s.Name, field)
}

// follow subscribes to the secret. done is called once, after its first answer.
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

// read reads the data that a secret references.
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

// validation returns the checks of the peer, combined with a secret.
func (s *slot) validation(secret *config.Secret) *config.Validation {
	return s.t.t.Validation.Merge(secret.Validation)
}

// missingLocked returns the name of a missing secret, or "". t.loading is held.
func (t *tlsContext) missingLocked() (name string) {
	for _, s := range t.slots {
		if s.secret == nil {
			name = s.source.Name
		}
	}
	return name
}

// await returns an error if a secret of the socket is missing, and counts it.
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

// followed returns the slots of the secrets that are not static.
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

// Follow subscribes to the secrets of the sockets. Call it once. It calls ready once,
// from any goroutine, when all of them have had a first answer, valid or not, or have
// timed out; immediately if there are none. Connections that need a missing secret
// fail.
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

// Awaited returns the names of the secrets that have had no answer yet, in the
// order of the configuration.
func (d *Dialer) Awaited() (names []string) {
	for _, s := range d.followed() {
		if !s.answered.Load() {
			names = append(names, s.source.Name)
		}
	}
	return names
}

// Dependent reports whether secrets come from a control plane, which is reached
// through other clusters.
func (d *Dialer) Dependent() bool {
	return slices.ContainsFunc(d.followed(), func(s *slot) bool { return s.source.Source.Kind != config.SourcePath })
}
