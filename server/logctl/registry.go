package logctl

import (
	"cmp"
	"errors"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/statsd-admin/statsd-admin/internal/logfile"
)

// DefaultFormat is the pattern of log lines when none is configured.
const DefaultFormat = "[%Y-%m-%d %T.%e][%t][%l][%n] [%g:%#] %v"

// Errors returned by changes of levels, which then have no effect. Their texts are
// part of the admin interface.
var (
	ErrUnknownLevel  = errors.New("unknown logger level")
	ErrUnknownLogger = errors.New("unknown logger name")
	ErrEmptyName     = errors.New("empty logger name or empty logger level")
)

// Config configures a [Registry]. The zero value logs at level info to standard
// error.
type Config struct {
	// Names lists the loggers in listing order. Default Names().
	Names []string
	// Level is the initial level of every logger. Default Info.
	Level Level
	// Levels overrides the level of single loggers. Unknown names are an error.
	Levels map[string]Level
	// Format is the pattern of a line; default DefaultFormat. Flags: %v message with
	// attributes, %_ the same, %j the same for use in a JSON string, %n logger, %l
	// level, %L its first letter in upper case, %t thread id, %P process id, %%
	// percent; of the source: %g directory and name, %s name, %# line, %@ as
	// %g:%#, %! function; of the time: %a %A weekday, %b %B month, %c date and time, %C year in
	// 2 digits, %Y in 4, %D %x MM/DD/YY, %m %d %H %I %M %S, %e milliseconds, %f
	// microseconds, %F nanoseconds, %p AM or PM, %r 12-hour clock, %R HH:MM, %T %X
	// HH:MM:SS, %z offset from UTC. Unknown flags are kept verbatim.
	Format string
	// Path is the log file, see [Registry.Reopen]. If empty, Output is used.
	Path string
	// Output receives one Write call per line. Default os.Stderr.
	Output io.Writer
	// FineGrain names loggers by source file. Names and Levels are ignored.
	FineGrain bool
}

// Registry holds loggers and their levels. Use [New].
type Registry struct {
	format    format
	fineGrain bool
	lines     sync.Pool // *[]byte

	file  *logfile.File // Config.Path; nil if empty
	outMu sync.Mutex
	out   io.Writer

	// lowest is the lowest level of any file in fine-grained mode. It is written
	// under mu.
	lowest atomic.Int32
	files  sync.Map // program counter (uintptr) to *logger, in fine-grained mode

	// mu guards the fields below and makes each change atomic. Levels are read
	// without it.
	mu       sync.Mutex
	byName   map[string]*logger
	order    []*logger // in listing order
	standard Level     // level of new loggers, and of files without a rule
	rules    []rule    // fine-grained mode: the first match wins
}

// logger is a named logger and its level.
type logger struct {
	name  string
	level atomic.Int32
}

// LoggerLevel is one row of the logger list.
type LoggerLevel struct {
	Name  string
	Level Level
}

// New returns a registry.
func New(cfg Config) (*Registry, error) {
	cfg.Format = cmp.Or(cfg.Format, DefaultFormat)
	if cfg.Output == nil {
		cfg.Output = os.Stderr
	}
	if cfg.Names == nil {
		cfg.Names = Names()
	}
	r := &Registry{
		format: compileFormat(cfg.Format), fineGrain: cfg.FineGrain, out: cfg.Output,
		byName: make(map[string]*logger), standard: cfg.Level,
	}
	r.lines.New = func() any { return new([]byte) }
	r.lowest.Store(int32(cfg.Level))
	if !cfg.FineGrain {
		for _, name := range cfg.Names {
			r.addLocked(name)
		}
		for name, level := range cfg.Levels {
			l := r.byName[name]
			if l == nil {
				return nil, ErrUnknownLogger
			}
			l.level.Store(int32(level))
		}
	}
	if cfg.Path != "" {
		file, err := logfile.Open(cfg.Path, logfile.Options{})
		if err != nil {
			return nil, err
		}
		r.file, r.out = file, file
	}
	return r, nil
}

// Reopen opens the log file again after a rotation, and does nothing without a log
// file. On failure the current file stays in use.
func (r *Registry) Reopen() error {
	if r.file == nil {
		return nil
	}
	return r.file.Reopen()
}

// Close closes the log file, if there is one. Later lines are lost.
func (r *Registry) Close() error {
	if r.file == nil {
		return nil
	}
	return r.file.Close()
}

// addLocked returns the logger with the given name, creating it if necessary. The
// caller holds r.mu or has exclusive access to r.
func (r *Registry) addLocked(name string) *logger {
	if l := r.byName[name]; l != nil {
		return l
	}
	l := &logger{name: name}
	l.level.Store(int32(r.levelOfLocked(name)))
	r.byName[name] = l
	r.order = append(r.order, l)
	return l
}

// levelOfLocked returns the initial level of a new logger. r.mu must be held.
func (r *Registry) levelOfLocked(name string) Level {
	for _, rule := range r.rules {
		if rule.match(name) {
			return rule.level
		}
	}
	return r.standard
}

// Logger returns the logger with the given name. A new logger is added to the list
// with the level last set for all loggers. In fine-grained mode the name is used only
// for %n.
func (r *Registry) Logger(name string) *slog.Logger {
	if r.fineGrain {
		return slog.New(&handler{r: r, l: &logger{name: name}})
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return slog.New(&handler{r: r, l: r.addLocked(name)})
}

// Handler returns next with the adjustable level of the logger with the given name: a
// record below that level is dropped, and the others go to next if it is enabled for
// them. The logger is added to the list as by [Registry.Logger]. In fine-grained mode
// the level is that of the source file.
//
// It is for programs with their own handler, such as slog.JSONHandler, whose
// levels are to change at run time; give that handler the lowest level.
func (r *Registry) Handler(name string, next slog.Handler) slog.Handler {
	l := &logger{name: name}
	if !r.fineGrain {
		r.mu.Lock()
		defer r.mu.Unlock()
		l = r.addLocked(name)
	}
	return &leveled{r, l, next}
}

// List returns all loggers in creation order. In fine-grained mode it returns the
// source files that have logged, sorted by path.
func (r *Registry) List() []LoggerLevel {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make([]LoggerLevel, len(r.order))
	for i, l := range r.order {
		list[i] = LoggerLevel{l.name, Level(l.level.Load())}
	}
	if r.fineGrain {
		slices.SortFunc(list, func(a, b LoggerLevel) int { return strings.Compare(a.Name, b.Name) })
	}
	return list
}

// SetAll sets the level of all existing and future loggers.
func (r *Registry) SetAll(level string) error {
	l, ok := ParseLevel(level)
	if !ok {
		return ErrUnknownLevel
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.standard = l
	r.rulesLocked(nil)
	return nil
}

// Set sets the level of one logger. In fine-grained mode it replaces all rules with
// this one.
func (r *Registry) Set(name, level string) error {
	l, ok := ParseLevel(level)
	if !ok {
		return ErrUnknownLevel
	}
	return r.apply([]rule{{name, l}})
}

// SetPaths sets several levels from a comma-separated list of name:level or
// name=level; blank elements are skipped. In fine-grained mode the list replaces all
// rules, names can be globs, and unknown names are not an error.
func (r *Registry) SetPaths(paths string) error {
	rules, err := parsePaths(paths)
	if err != nil {
		return err
	}
	return r.apply(rules)
}

// parsePaths parses the list of [Registry.SetPaths].
func parsePaths(paths string) (rules []rule, err error) {
	for piece := range strings.SplitSeq(paths, ",") {
		if piece = strings.TrimSpace(piece); piece == "" {
			continue
		}
		name, level, ok := strings.Cut(piece, ":")
		if !ok {
			name, level, ok = strings.Cut(piece, "=")
		}
		if !ok || name == "" || level == "" {
			return nil, ErrEmptyName
		}
		l, ok := ParseLevel(level)
		if !ok {
			return nil, ErrUnknownLevel
		}
		rules = append(rules, rule{name, l})
	}
	return rules, nil
}

// apply changes several levels, or none of them.
func (r *Registry) apply(rules []rule) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fineGrain {
		r.rulesLocked(rules)
		return nil
	}
	return r.setLocked(rules)
}

// setLocked sets the levels of loggers, or none if one does not exist. r.mu must be
// held.
func (r *Registry) setLocked(rules []rule) error {
	for _, rule := range rules {
		if r.byName[rule.pattern] == nil {
			return ErrUnknownLogger
		}
	}
	for _, rule := range rules {
		r.byName[rule.pattern].level.Store(int32(rule.level))
	}
	return nil
}

// Clone returns a registry with the same loggers and levels, whose changes have no
// effect on r. Its loggers discard their lines.
func (r *Registry) Clone() *Registry {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := &Registry{format: r.format, fineGrain: r.fineGrain, out: io.Discard, byName: make(map[string]*logger, len(r.order)),
		standard: r.standard, rules: slices.Clone(r.rules)}
	c.lines.New = r.lines.New
	c.lowest.Store(r.lowest.Load())
	for _, l := range r.order {
		c.addLocked(l.name).level.Store(l.level.Load())
	}
	return c
}

// The names in [Registry.Settings] that are not loggers.
const (
	settingAll   = "level" // of new loggers
	settingPaths = "paths" // rules of source files, in fine-grained mode
)

// Settings returns the adjustable state by name: the level of each logger, and under
// "level" that of new loggers. In fine-grained mode, the loggers are replaced by "paths",
// the rules as [Registry.SetPaths] takes them.
func (r *Registry) Settings() map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := map[string]string{settingAll: r.standard.String()}
	if r.fineGrain {
		var rules []string
		for _, rule := range r.rules {
			rules = append(rules, rule.pattern+":"+rule.level.String())
		}
		out[settingPaths] = strings.Join(rules, ",")
		return out
	}
	for _, l := range r.order {
		if l.name != settingAll {
			out[l.name] = Level(l.level.Load()).String()
		}
	}
	return out
}

// Restore sets values of [Registry.Settings], or none if it returns an error. Other
// loggers keep their levels.
func (r *Registry) Restore(settings map[string]string) error {
	var rules []rule
	standard := ""
	for name, value := range settings {
		switch {
		case name == settingAll:
			standard = value
		case r.fineGrain && name != settingPaths:
			return ErrUnknownLogger
		case r.fineGrain:
			parsed, err := parsePaths(value)
			if err != nil {
				return err
			}
			rules = parsed
		default:
			level, ok := ParseLevel(value)
			if !ok {
				return ErrUnknownLevel
			}
			rules = append(rules, rule{name, level})
		}
	}
	level, ok := ParseLevel(standard)
	if !ok && standard != "" {
		return ErrUnknownLevel
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.fineGrain {
		if err := r.setLocked(rules); err != nil {
			return err
		}
	}
	if standard != "" {
		r.standard = level
	}
	if r.fineGrain {
		if _, ok := settings[settingPaths]; !ok {
			rules = r.rules
		}
		r.rulesLocked(rules)
	}
	return nil
}

// write writes one line to the output.
func (r *Registry) write(line []byte) error {
	r.outMu.Lock()
	defer r.outMu.Unlock()
	_, err := r.out.Write(line)
	return err
}
