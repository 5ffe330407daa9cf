package logctl

import (
	"log/slog"
	"math"
)

// Level is the lowest severity that a logger writes.
type Level int8

// The levels, in ascending order. The zero value is Info. A logger at Off writes
// nothing.
const (
	Trace Level = iota - 2
	Debug
	Info
	Warning
	Error
	Critical
	Off
)

var levelNames = [...]string{"trace", "debug", "info", "warning", "error", "critical", "off"}

// Levels returns the names of all levels in ascending order.
func Levels() []string { return levelNames[:] }

// String returns the name of l.
func (l Level) String() string {
	if l < Trace || l > Off {
		return "unknown"
	}
	return levelNames[l-Trace]
}

// ParseLevel returns the level with the given name. Names are case-sensitive, and
// aliases such as "warn" are not accepted.
func ParseLevel(name string) (Level, bool) {
	for i, n := range levelNames {
		if n == name {
			return Trace + Level(i), true
		}
	}
	return Off, false
}

// The slog levels without a name in package slog.
const (
	SlogTrace    = slog.Level(-8)
	SlogCritical = slog.Level(12)
)

// Slog returns the corresponding slog level.
func (l Level) Slog() slog.Level {
	switch l {
	case Trace:
		return SlogTrace
	case Debug:
		return slog.LevelDebug
	case Info:
		return slog.LevelInfo
	case Warning:
		return slog.LevelWarn
	case Error:
		return slog.LevelError
	case Critical:
		return SlogCritical
	}
	return slog.Level(math.MaxInt)
}

func levelOf(l slog.Level) Level {
	switch {
	case l < slog.LevelDebug:
		return Trace
	case l < slog.LevelInfo:
		return Debug
	case l < slog.LevelWarn:
		return Info
	case l < slog.LevelError:
		return Warning
	case l < SlogCritical:
		return Error
	}
	return Critical
}
