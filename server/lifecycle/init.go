package lifecycle

import (
	"slices"
	"sync"
)

// Listener is the component whose managers a dump of listeners shows.
const Listener = "listener"

// Manager waits for a group of targets, such as everything that a listener needs
// before it can serve. Create it with [Server.NewManager].
type Manager struct {
	server    *Server
	component string
	name      string

	mu      sync.Mutex
	started bool
	done    bool // ready was reported to the server
	removed bool
	targets []*Target // in creation order
}

// Target is one thing that a [Manager] waits for.
type Target struct {
	manager *Manager
	name    string
	start   func() // nil once called

	ready bool // guarded by manager.mu
}

// Unready lists the pending targets of one manager.
type Unready struct {
	Component string   // such as "listener"
	Name      string   // "init manager <name>"
	Targets   []string // "target <name>", in creation order
}

// NewManager returns a manager of a component. A manager created after
// [Server.Initialize] starts at once and does not change the server's state.
func (s *Server) NewManager(component, name string) *Manager {
	m := &Manager{server: s, component: component, name: name}
	s.managersMu.Lock()
	defer s.managersMu.Unlock()
	s.managers = append(s.managers, m)
	if State(s.phase.Load()) != PreInitializing {
		m.started, m.done = true, true
	}
	return m
}

// Initialize ends the state PreInitializing: it moves to Initializing and starts all
// targets. When every target is ready, at once if there is none, it moves to Live and
// then calls done, which may be nil. Further calls do nothing.
func (s *Server) Initialize(done func()) {
	s.managersMu.Lock()
	if !s.move(PreInitializing, Initializing) {
		s.managersMu.Unlock()
		return
	}
	managers := slices.Clone(s.managers)
	s.initDone = done
	s.waiting = len(managers) + 1 // one for this function itself
	s.managersMu.Unlock()
	for _, m := range managers {
		m.begin()
	}
	s.managerReady()
}

// managerReady counts one manager, or Initialize itself, as ready.
func (s *Server) managerReady() {
	s.managersMu.Lock()
	s.waiting--
	live := s.waiting == 0
	done := s.initDone
	s.managersMu.Unlock()
	if !live {
		return
	}
	golive := func() {
		if s.move(Initializing, Live) && done != nil {
			done()
		}
	}
	if s.commit != nil {
		s.commit(golive)
		return
	}
	golive()
}

// Unready lists the managers with pending targets, in creation order.
func (s *Server) Unready() []Unready {
	s.managersMu.Lock()
	managers := slices.Clone(s.managers)
	s.managersMu.Unlock()
	var list []Unready
	for _, m := range managers {
		if u := m.unready(); len(u.Targets) > 0 {
			list = append(list, u)
		}
	}
	return list
}

// Add returns a new target of m. start, which may be nil, is called once when the
// server initializes, without holding a lock; on a started manager it is called at
// once. A target added to a ready manager is shown while it is pending, but nothing
// waits for it.
func (m *Manager) Add(name string, start func()) *Target {
	t := &Target{manager: m, name: name, start: start}
	m.mu.Lock()
	m.targets = append(m.targets, t)
	var now func()
	if m.started {
		now, t.start = t.start, nil
	}
	m.mu.Unlock()
	if now != nil {
		now()
	}
	return t
}

// Remove removes m from the dump, for example because its listener was removed.
// Nothing waits for it any more.
func (m *Manager) Remove() {
	s := m.server
	s.managersMu.Lock()
	s.managers = slices.DeleteFunc(s.managers, func(other *Manager) bool { return other == m })
	s.managersMu.Unlock()
	m.mu.Lock()
	m.removed = true
	m.mu.Unlock()
	m.check()
}

// Ready reports that the target is ready. Later calls do nothing.
func (t *Target) Ready() {
	m := t.manager
	m.mu.Lock()
	t.ready = true
	m.mu.Unlock()
	m.check()
}

// begin starts the targets of m.
func (m *Manager) begin() {
	var starts []func()
	m.mu.Lock()
	for _, t := range m.targets {
		if t.start != nil {
			starts = append(starts, t.start)
			t.start = nil
		}
	}
	m.started = true
	m.mu.Unlock()
	for _, start := range starts {
		start()
	}
	m.check()
}

// check notifies the server once when no target is pending.
func (m *Manager) check() {
	m.mu.Lock()
	first := m.started && !m.done && (m.removed || !slices.ContainsFunc(m.targets, func(t *Target) bool { return !t.ready }))
	if first {
		m.done = true
	}
	m.mu.Unlock()
	if first {
		m.server.managerReady()
	}
}

func (m *Manager) unready() Unready {
	u := Unready{Component: m.component, Name: "init manager " + m.name}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, t := range m.targets {
		if !t.ready {
			u.Targets = append(u.Targets, "target "+t.name)
		}
	}
	return u
}
