package logctl

import (
	"cmp"
	"path"
	"runtime"
	"strings"
)

// rule assigns a level to source files. In named mode the pattern is the name of a
// logger.
type rule struct {
	pattern string
	level   Level
}

// match reports whether the rule applies to a source file: by its full path, by its
// base name without extension, or by a glob in which * matches any run of characters
// and ? matches one. A glob with a slash matches the path, any other the base name.
func (r rule) match(file string) bool {
	if r.pattern == file {
		return true
	}
	if strings.Contains(r.pattern, "/") {
		return glob(r.pattern, file)
	}
	base, _, _ := strings.Cut(path.Base(file), ".")
	return glob(r.pattern, base)
}

// glob takes linear time for one star and at worst the product of both lengths: after
// a mismatch it retries only the last star.
func glob(pattern, text string) bool {
	p, t, star, mark := 0, 0, -1, 0
	for t < len(text) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, t
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == text[t]):
			p++
			t++
		case star >= 0:
			mark++
			p, t = star+1, mark
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

// rulesLocked replaces all rules. r.mu must be held.
func (r *Registry) rulesLocked(rules []rule) {
	r.rules = rules
	lowest := r.standard
	for _, rule := range rules {
		lowest = min(lowest, rule.level)
	}
	for _, l := range r.order {
		l.level.Store(int32(r.levelOfLocked(l.name)))
	}
	r.lowest.Store(int32(lowest))
}

// fileLogger returns the logger of the source file that pc belongs to.
func (r *Registry) fileLogger(pc uintptr) *logger {
	if l, ok := r.files.Load(pc); ok {
		return l.(*logger)
	}
	frame, _ := runtime.CallersFrames([]uintptr{pc}).Next()
	file := cmp.Or(frame.File, "unknown")
	r.mu.Lock()
	l := r.addLocked(file)
	r.mu.Unlock()
	r.files.Store(pc, l) // bounded by the number of call sites
	return l
}
