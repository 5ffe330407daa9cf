package xds

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/statsd-admin/statsd-admin/internal/guard"
	"github.com/statsd-admin/statsd-admin/internal/oneline"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/config/decode"
	"github.com/statsd-admin/statsd-admin/upstream/transport"
)

// SecretState is the state of a secret that is followed.
type SecretState struct {
	Name    string
	Version string     // of the accepted update; empty if there was none
	Updated time.Time  // time of the last accepted update or of the first request
	Message *anypb.Any // as received, private keys included; nil if none was accepted
	Failure *Failure   // of the last update; nil if it was accepted
}

// Secrets returns the source of secrets for TLS contexts. Contexts that name the same
// secret of the same source share a subscription.
func (c *Client) Secrets() transport.Secrets { return &c.secrets }

// SecretStates calls yield with each followed secret in the order of names. Callers
// must not change the states.
func (c *Client) SecretStates(yield func(*SecretState) bool) {
	s := &c.secrets
	s.mu.Lock()
	var list []*secretFeed
	for _, key := range slices.Sorted(maps.Keys(s.feeds)) {
		list = append(list, s.feeds[key])
	}
	s.mu.Unlock()
	slices.SortStableFunc(list, func(a, b *secretFeed) int { return strings.Compare(a.source.Name, b.source.Name) })
	for _, f := range list {
		if !yield(f.state()) {
			return
		}
	}
}

// secrets holds all followed secrets.
type secrets struct {
	c *Client

	mu      sync.Mutex             // guards the fields below, and uses, cancel and running of feeds; locked before the mu of feeds
	feeds   map[string]*secretFeed // by source, kind and name
	ctx     context.Context        // of Run; nil before it
	ended   bool                   // Run is stopping
	running sync.WaitGroup
}

// run runs feeds until ctx is done.
func (s *secrets) run(ctx context.Context) {
	s.begin(ctx)
	<-ctx.Done()
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.running.Wait()
}

// begin starts the existing feeds; later ones start as they are added.
func (s *secrets) begin(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ctx = ctx
	for _, f := range s.feeds {
		s.startLocked(f)
	}
}

// startLocked starts a feed if it can run now. s.mu is held.
func (s *secrets) startLocked(f *secretFeed) {
	if s.ctx == nil || s.ended || f.running {
		return
	}
	ctx, cancel := context.WithCancel(s.ctx)
	f.running, f.cancel = true, cancel
	s.running.Go(func() {
		completed := f.guard().Run("secret", func() { f.run(ctx) })
		cancel()
		f.guard().Run("end of a secret", func() {
			if !completed {
				f.started() // no response will follow
			}
			s.stopped(f)
		})
	})
}

// stopped marks f as stopped.
func (s *secrets) stopped(f *secretFeed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.running = false
	if f.uses == 0 {
		f.scope.Close()
	}
}

// Check implements [transport.Secrets].
func (s *secrets) Check(src *config.SecretSource) error {
	if src.Name == "" {
		return errors.New("a secret needs a name")
	}
	return s.c.check(src.Source)
}

// Follow implements [transport.Secrets].
func (s *secrets) Follow(src *config.SecretSource, k config.SecretKind, u transport.SecretUser) (stop func()) {
	key := feedKey(src, k)
	s.mu.Lock()
	f := s.feeds[key]
	if f == nil {
		f = s.c.newSecretFeed(src, k)
		if s.feeds == nil {
			s.feeds = make(map[string]*secretFeed)
		}
		s.feeds[key] = f
		s.startLocked(f)
	}
	f.uses++
	s.mu.Unlock()
	x := &secretUse{user: u}
	f.join(x)
	return sync.OnceFunc(func() { s.leave(key, f, x) })
}

// leave removes a use, and the subscription with the last one.
func (s *secrets) leave(key string, f *secretFeed, x *secretUse) {
	s.mu.Lock()
	if f.uses--; f.uses == 0 {
		delete(s.feeds, key)
		if f.running {
			f.cancel()
		} else {
			f.scope.Close()
		}
	}
	s.mu.Unlock()
	f.using.Lock() // not mu, which is held while other users read files
	defer f.using.Unlock()
	f.users = removed(f.users, x, func(x *secretUse) *int { return &x.place })
}

// feedKey identifies a secret by kind, name and source.
func feedKey(src *config.SecretSource, k config.SecretKind) string {
	key, err := json.Marshal(src)
	if err != nil { // numbers without a JSON form are not shared
		return fmt.Sprintf("%p", src)
	}
	return string(key) + " " + k.String()
}

// secretUse is one use of a secret, until it is stopped.
type secretUse struct {
	user  transport.SecretUser
	place int // in secretFeed.users; guarded by its using
}

// secretFeed follows one secret for all contexts that use it.
type secretFeed struct {
	c       *Client
	source  *config.SecretSource
	kind    config.SecretKind
	scope   *store.Scope
	stats   updateStats
	rotated *store.Counter // counts changed files that were refused
	watch   chan struct{}  // signals that the watched files changed; capacity 1

	uses    int
	running bool
	cancel  context.CancelFunc

	using sync.Mutex // guards users, held briefly; locked after mu
	users []*secretUse

	mu       sync.Mutex           // held while a secret is applied and while users join
	current  *decode.ParsedSecret // nil before the first accepted update
	read     *transport.Secret    // current with its files read
	hash     uint64               // of the message
	digest   uint64               // of the files that it names
	version  string
	updated  time.Time
	failure  *Failure
	answered bool
}

func (c *Client) newSecretFeed(src *config.SecretSource, k config.SecretKind) *secretFeed {
	f := &secretFeed{
		c: c, source: src, kind: k, updated: time.Now(), watch: make(chan struct{}, 1),
		scope: c.o.Store.Own().Scope("sds." + scopeName(src.Name)),
	}
	f.stats, f.rotated = newUpdateStats(f.scope), f.scope.Counter("key_rotation_failed")
	return f
}

// scopeName returns a name for statistics. Names of secrets are often URIs.
func scopeName(name string) string {
	name = strings.NewReplacer("://", "_", ":/", "_", ":", "_").Replace(oneline.Clean(name))
	return strings.Trim(name, ".")
}

func (f *secretFeed) run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	var rotation sync.WaitGroup
	defer rotation.Wait()
	defer cancel()
	rotation.Go(func() {
		for !f.guard().Run("watch of the files of a secret", func() { f.rotate(ctx) }) { // rotate waits first, so a panic is not a busy loop
		}
	})
	f.c.follow(ctx, secretKind, f.source.Name, f.source.Source, f, f.stats, f.scope)
}

func (f *secretFeed) join(x *secretUse) {
	if f.admit(x) {
		x.user.Answered()
	}
}

// admit adds x to the users and reports whether there was a first response.
func (f *secretFeed) admit(x *secretUse) (answered bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.using.Lock()
	x.place = len(f.users)
	f.users = append(f.users, x)
	f.using.Unlock()
	if f.current == nil {
		return f.answered
	}
	commit, err := x.user.Prepare(f.read)
	if err == nil {
		commit()
	} else {
		f.c.log.Warn("secret cannot be used", "secret", f.source.Name, "error", err.Error())
	}
	return f.answered
}

func (f *secretFeed) list() []transport.SecretUser {
	f.using.Lock()
	defer f.using.Unlock()
	list := make([]transport.SecretUser, len(f.users))
	for i, x := range f.users {
		list[i] = x.user
	}
	return list
}

// started implements [sink].
func (f *secretFeed) started() {
	f.mu.Lock()
	f.answered = true
	users := f.list()
	f.mu.Unlock()
	for _, u := range users { // this can close clusters and end their use of secrets
		f.guard().Run("answer about a secret", u.Answered)
	}
}

// apply implements [sink]. A removed secret stays in effect because connections cannot
// do without one.
func (f *secretFeed) apply(u *update) (changed bool, faults []fault) {
	switch {
	case len(u.removed) > 0:
		f.c.log.Warn("secret was removed by its server; the last version stays in use", "secret", f.source.Name)
		return false, nil
	case len(u.resources) != 1:
		return false, []fault{{"", fmt.Errorf("xds: %d resources for secret %q, exactly one is allowed", len(u.resources), f.source.Name)}}
	}
	r := &u.resources[0]
	f.mu.Lock()
	defer f.mu.Unlock()
	changed, err := f.setLocked(r)
	if err != nil {
		f.c.log.Warn("secret refused", "secret", f.source.Name, "error", err.Error())
		f.failure = &Failure{Name: f.source.Name, Version: oneline.Clean(r.Version), Details: err.Error(), Attempt: time.Now(), Config: refusedSecret(r)}
		return false, []fault{{r.Name, err}}
	}
	f.version, f.updated, f.failure = oneline.Clean(r.Version), time.Now(), nil
	return changed, nil
}

// maxRefusedSecret limits the bytes of a refused secret that is kept.
const maxRefusedSecret = 64 << 10

// refusedSecret returns a secret as received. It returns nil if it is too large, or if the
// bytes are no secret: then private keys in them cannot be found and masked.
func refusedSecret(r *decode.Resource) *anypb.Any {
	a := r.Any()
	if len(a.GetValue()) > maxRefusedSecret {
		return nil
	}
	switch a.MessageName() {
	case "envoy.extensions.transport_sockets.tls.v3.Secret", "envoy.api.v2.auth.Secret":
	default:
		return nil
	}
	if _, err := a.UnmarshalNew(); err != nil {
		return nil
	}
	return a
}

func (f *secretFeed) setLocked(r *decode.Resource) (changed bool, err error) {
	if b := r.Bytes(); b != nil && f.current != nil && f.hash == secretHash(r.TypeURL, b) {
		f.reloadLocked()
		return false, nil
	}
	p, err := f.c.o.Decoder.SecretResource(r)
	if err != nil {
		return false, err
	}
	hash := secretHash(p.TypeURL(), p.Any().GetValue())
	if b := r.Bytes(); b != nil {
		hash = secretHash(r.TypeURL, b) // equal messages can have different bytes
	} else if f.current != nil && f.hash == hash {
		f.reloadLocked()
		return false, nil
	}
	switch {
	case p.Secret.Name != r.Name:
		return false, misnamed(r, p.Secret.Name)
	case r.Name != f.source.Name:
		return false, fmt.Errorf("xds: secret %q was received instead of %q", r.Name, f.source.Name)
	case p.Secret.Kind != f.kind:
		return false, fmt.Errorf("xds: secret %q holds a %s, not a %s", r.Name, p.Secret.Kind, f.kind)
	}
	digest := digestOf(p.Secret) // before the files are read, so that later changes are noticed
	if err := f.putLocked(p.Secret); err != nil {
		return false, err
	}
	for _, w := range p.Warnings() {
		f.c.log.Warn(w.Error())
	}
	f.current, f.hash, f.digest = p, hash, digest
	select {
	case f.watch <- struct{}{}:
	default:
	}
	return true, nil
}

func secretHash(typeURL string, value []byte) uint64 {
	h := xxhash.New()
	_, _ = h.WriteString(typeURL + "\n")
	_, _ = h.Write(value)
	return h.Sum64()
}

// putLocked applies a secret in all contexts, or in none if one refuses it. f.mu is
// held.
func (f *secretFeed) putLocked(s *config.Secret) error {
	users, read := f.list(), transport.NewSecret(s)
	commits := make([]func(), len(users))
	for i, u := range users {
		var err error
		if commits[i], err = u.Prepare(read); err != nil {
			return err
		}
	}
	for _, commit := range commits {
		commit()
	}
	f.read = read
	return nil
}

// rotate rereads the files of a secret when they change, until ctx is done.
func (f *secretFeed) rotate(ctx context.Context) {
	moved := make(chan struct{}, 1)
	var watches []*fileWatch
	defer func() {
		for _, w := range watches {
			f.c.files.leave(w)
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.watch:
			dirs := f.directories()
			old := watches
			watches = nil
			for _, dir := range dirs {
				w := &fileWatch{dir: dir, moved: moved}
				if err := f.c.files.watch(w); err != nil {
					f.c.log.Warn("cannot watch directory yet", "directory", dir, "error", err.Error())
				}
				watches = append(watches, w)
			}
			for _, w := range old {
				f.c.files.leave(w)
			}
		case <-moved:
		}
		f.guard().Run("files of a secret", f.reload)
	}
}

func (f *secretFeed) guard() guard.Guard { return guard.New(f.c.o.Logger) }

// reload applies the secret again if its files changed.
func (f *secretFeed) reload() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reloadLocked()
}

// reloadLocked applies the secret again if its files changed. f.mu is held.
func (f *secretFeed) reloadLocked() {
	digest := digestOf(f.current.Secret)
	if digest == f.digest {
		return
	}
	if err := f.putLocked(f.current.Secret); err != nil {
		f.rotated.Inc()
		f.c.log.Warn("files of a secret refused; the last version stays in use", "secret", f.source.Name, "error", err.Error())
		return
	}
	f.digest = digest
}

func filesOf(s *config.Secret) (names []string) {
	add := func(list ...config.Data) {
		for _, d := range list {
			if d.Kind == config.DataFile {
				names = append(names, d.Name)
			}
		}
	}
	if c := s.Certificate; c != nil {
		add(c.Chain, c.PrivateKey, c.OCSPStaple)
	}
	if v := s.Validation; v != nil {
		add(v.TrustedCA, v.CRL)
	}
	return names
}

// directories returns the directories to watch for the current secret.
func (f *secretFeed) directories() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return directories(f.current.Secret)
}

// directories returns the configured directories to watch for a secret, else the
// directories of its files.
func directories(s *config.Secret) (dirs []string) {
	files := filesOf(s)
	if len(files) == 0 {
		return nil
	}
	switch {
	case s.Certificate != nil && s.Certificate.WatchedDirectory != "":
		return []string{filepath.Clean(s.Certificate.WatchedDirectory)}
	case s.Validation != nil && s.Validation.WatchedDirectory != "":
		return []string{filepath.Clean(s.Validation.WatchedDirectory)}
	}
	for _, name := range files {
		if dir := filepath.Dir(name); !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// digestOf returns a digest of the files that a secret names.
func digestOf(s *config.Secret) uint64 {
	h := xxhash.New()
	for _, name := range filesOf(s) {
		data, err := transport.ReadFile(name)
		fmt.Fprintf(h, "%d %v\n", len(data), err != nil)
		_, _ = h.Write(data)
	}
	return h.Sum64()
}

func (f *secretFeed) state() *SecretState {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := &SecretState{Name: f.source.Name, Version: f.version, Updated: f.updated, Failure: f.failure}
	if f.current != nil {
		s.Message = f.current.Any()
	}
	return s
}

// needsItself reports whether a cluster needs secrets from its own control plane,
// directly or through other clusters.
func (c *Client) needsItself(of *config.Cluster) bool {
	seen := make(map[string]bool)
	var leads func(cl *config.Cluster) bool
	leads = func(cl *config.Cluster) bool {
		for src := range remoteSecrets(cl) {
			name := c.serverOf(src.Source)
			if name == of.Name {
				return true
			}
			if name == "" || seen[name] {
				continue
			}
			seen[name] = true
			if next, err := c.control(name); err == nil && leads(next.Config()) {
				return true
			}
		}
		return false
	}
	return leads(of)
}

// serverOf returns the cluster of the control plane of a source, empty if there is
// none.
func (c *Client) serverOf(src *config.ConfigSource) string {
	api := src.API
	switch src.Kind {
	case config.SourceADS, config.SourceSelf:
		api = c.o.ADS
	case config.SourcePath:
		return ""
	}
	if api == nil || len(api.GRPC) == 0 {
		return ""
	}
	return api.GRPC[0].ClusterName
}

// remoteSecrets calls yield with the secrets of a cluster that have a source.
func remoteSecrets(cl *config.Cluster) func(yield func(*config.SecretSource) bool) {
	return func(yield func(*config.SecretSource) bool) {
		sockets := []*config.Socket{&cl.Sockets.Default}
		for i := range cl.Sockets.Matches {
			sockets = append(sockets, &cl.Sockets.Matches[i].Socket)
		}
		for _, s := range sockets {
			if s.TLS == nil {
				continue
			}
			for i := range s.TLS.CertificateSecrets {
				if x := &s.TLS.CertificateSecrets[i]; x.Source != nil && !yield(x) {
					return
				}
			}
			if x := s.TLS.ValidationSecret; x != nil && x.Source != nil && !yield(x) {
				return
			}
		}
	}
}
