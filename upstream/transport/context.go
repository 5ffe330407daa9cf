package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/statsd-admin/statsd-admin/certinfo"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/host"
)

// tlsContext is the client side of TLS as configured by one socket.
type tlsContext struct {
	f           *Factory
	cluster     string
	path        string // of its fields in error texts
	t           *config.TLS
	stats       *tlsStats
	directories []string // watched
	base        *tls.Config
	slots       []*slot // of the secrets it names

	loading sync.Mutex               // held while current is replaced
	current atomic.Pointer[material] // nil: a secret is missing; once set it stays set
	own     content                  // of what the context itself holds; guarded by loading
	entry   *certinfo.Handle         // set once; guarded by loading
	closed  bool                     // guarded by loading
}

// newTLSContext checks a context and loads its files.
func (f *Factory) newTLSContext(cluster string, c *config.TLS, path string, stats *tlsStats) (*tlsContext, error) {
	if c == nil {
		return nil, fmt.Errorf("%s: must be set", path)
	}
	t := &tlsContext{f: f, cluster: cluster, path: path, t: c, stats: stats}
	if err := t.check(); err != nil {
		return nil, err
	}
	var err error
	if t.base, err = baseConfig(c, path); err != nil {
		return nil, err
	}
	t.base.Time = f.c.Now
	if err := t.newSlots(); err != nil {
		return nil, err
	}
	t.watch()
	f.add(t) // before files are read: those that change meanwhile are read again
	if err := t.load(); err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

func (t *tlsContext) close() {
	t.f.remove(t)
	t.loading.Lock()
	var stop []func()
	if !t.closed {
		t.closed = true
		if t.entry != nil {
			t.entry.Remove()
		}
		for _, s := range t.slots {
			if s.stop != nil {
				stop = append(stop, s.stop)
			}
		}
	}
	t.loading.Unlock() // the goroutine that delivers secrets may wait for it
	for _, f := range stop {
		f()
	}
}

// common is the path of the fields that clients and servers share.
func (t *tlsContext) common() string { return t.path + ".common_tls_context" }

// check rejects unsupported settings, independent of the secrets.
func (t *tlsContext) check() error {
	switch {
	case len(t.t.Unread) > 0:
		return fmt.Errorf("%s.%s: not supported", t.path, t.t.Unread[0])
	case len(t.t.SignatureAlgorithms) > 0:
		return fmt.Errorf("%s.tls_params.signature_algorithms: the list cannot be changed here, leave it out", t.common())
	}
	return nil
}

// checkValidation rejects checks that have no effect without trusted authorities. v
// may be nil.
func (t *tlsContext) checkValidation(v *config.Validation, at string) error {
	if v != nil && (v.TrustedCA.Kind != config.NoData || v.SystemRoots) {
		return nil
	}
	without := func(field string) error {
		return fmt.Errorf("%s.%s: needs trusted_ca", at, field)
	}
	switch {
	case t.t.AutoSNISANValidation:
		return fmt.Errorf("%s.auto_sni_san_validation: needs a validation context with trusted_ca", t.path)
	case v == nil:
		return nil
	case len(v.SANs) > 0:
		return without("match_typed_subject_alt_names")
	case v.CRL.Kind != config.NoData:
		return without("crl")
	case v.AllowExpired:
		return without("allow_expired_certificate")
	}
	return nil
}

// watch records the directories whose changes trigger a reload.
func (t *tlsContext) watch() {
	add := func(dir string) {
		if dir != "" {
			t.directories = append(t.directories, filepath.Clean(dir))
		}
	}
	for i := range t.t.Certificates {
		add(t.t.Certificates[i].WatchedDirectory)
	}
	validation := t.t.Validation
	for _, s := range t.slots { // so far only static secrets are there
		switch {
		case s.secret == nil:
		case s.kind == config.CertificateSecret:
			add(s.secret.Certificate.WatchedDirectory)
		default:
			validation = s.validation(s.secret)
		}
	}
	if validation != nil {
		add(validation.WatchedDirectory)
	}
}

// load reads the files. On an error the previous content stays.
func (t *tlsContext) load() error {
	t.loading.Lock()
	defer t.loading.Unlock()
	if t.closed {
		return nil
	}
	own, err := t.readOwnLocked()
	if err != nil {
		return err
	}
	contents := make([]content, len(t.slots))
	for i, s := range t.slots {
		if s.secret == nil {
			continue
		}
		if contents[i], err = s.read(NewSecret(s.secret)); err != nil {
			return err
		}
	}
	t.own = own
	for i, s := range t.slots {
		s.content = contents[i]
	}
	t.installLocked()
	return nil
}

// installLocked activates the loaded content unless a part is missing. t.loading is
// held.
func (t *tlsContext) installLocked() {
	if t.missingLocked() != "" {
		return
	}
	all := content{identities: slices.Clone(t.own.identities), trust: t.own.trust}
	for _, s := range t.slots {
		all.identities = append(all.identities, s.identities...)
		if s.trust != nil {
			all.trust = s.trust
		}
	}
	m := t.material(all)
	t.current.Store(m)
	if t.entry == nil {
		t.entry = t.f.c.Registry.Add(m.shown)
	} else {
		t.entry.Update(m.shown)
	}
}

// handshake establishes TLS to h over conn, which stays open on an error. No secret
// may be missing.
func (t *tlsContext) handshake(ctx context.Context, conn net.Conn, h *host.Host, o *Options) (net.Conn, error) {
	m := t.current.Load()
	cfg := m.config.Clone()
	cfg.ServerName = t.t.SNI
	if name := h.Hostname(); t.t.AutoHostSNI && name != "" {
		cfg.ServerName = name
	}
	if o.ServerName != "" {
		cfg.ServerName = o.ServerName
	}
	switch {
	case len(o.ALPN) > 0:
		cfg.NextProtos = o.ALPN
	case len(cfg.NextProtos) == 0:
		cfg.NextProtos = o.DefaultALPN
	}
	p := peer{t: t, m: m, sni: cfg.ServerName, sans: o.SubjectAltNames}
	cfg.VerifyConnection = p.verify
	c := tls.Client(conn, cfg)
	err := c.HandshakeContext(ctx)
	if err == nil {
		t.stats.handshake(c.ConnectionState())
		return c, nil
	}
	var refused *peerError
	if !errors.As(err, &refused) {
		t.stats.connectionError.Inc()
	}
	return nil, err
}
