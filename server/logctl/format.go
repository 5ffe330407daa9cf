package logctl

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/logfile"
)

// event holds the values that a line can show.
type event struct {
	time    time.Time
	level   Level
	logger  string
	message []byte // escaped, with attributes
	frame   runtime.Frame
}

// format is a compiled pattern.
type format struct {
	pieces []piece
	source bool // a flag needs the source location
}

// piece is either literal text or a flag.
type piece struct {
	text  string
	write func(dst []byte, e *event) []byte // nil for literal text
}

// flags maps each flag to the function that writes it.
func flags() map[byte]func(dst []byte, e *event) []byte {
	clock := func(layout string) func([]byte, *event) []byte {
		return func(dst []byte, e *event) []byte { return e.time.AppendFormat(dst, layout) }
	}
	fraction := func(digits int, unit time.Duration) func([]byte, *event) []byte {
		return func(dst []byte, e *event) []byte {
			return appendPadded(dst, e.time.Nanosecond()/int(unit), digits)
		}
	}
	message := func(dst []byte, e *event) []byte { return append(dst, e.message...) }
	return map[byte]func([]byte, *event) []byte{
		'v': message,
		'_': message, // messages never contain line breaks
		'j': func(dst []byte, e *event) []byte { return appendJSON(dst, e.message) },
		't': func(dst []byte, _ *event) []byte { return strconv.AppendInt(dst, int64(threadID()), 10) },
		'P': func(dst []byte, _ *event) []byte { return strconv.AppendInt(dst, int64(os.Getpid()), 10) },
		'n': func(dst []byte, e *event) []byte { return logfile.AppendEscaped(dst, e.logger) },
		'l': func(dst []byte, e *event) []byte { return append(dst, e.level.String()...) },
		'L': func(dst []byte, e *event) []byte { return append(dst, e.level.String()[0]-'a'+'A') },
		'%': func(dst []byte, _ *event) []byte { return append(dst, '%') },

		'@': func(dst []byte, e *event) []byte {
			return strconv.AppendInt(append(append(dst, shortPath(e.frame.File)...), ':'), int64(e.frame.Line), 10)
		},
		's': func(dst []byte, e *event) []byte {
			return append(dst, e.frame.File[strings.LastIndexByte(e.frame.File, '/')+1:]...)
		},
		'g': func(dst []byte, e *event) []byte { return append(dst, shortPath(e.frame.File)...) },
		'#': func(dst []byte, e *event) []byte { return strconv.AppendInt(dst, int64(e.frame.Line), 10) },
		'!': func(dst []byte, e *event) []byte {
			return append(dst, e.frame.Function[strings.LastIndexByte(e.frame.Function, '/')+1:]...)
		},

		'a': clock("Mon"), 'A': clock("Monday"), 'b': clock("Jan"), 'B': clock("January"), 'c': clock("Mon Jan _2 15:04:05 2006"),
		'C': clock("06"), 'Y': clock("2006"), 'D': clock("01/02/06"), 'x': clock("01/02/06"),
		'm': clock("01"), 'd': clock("02"), 'H': clock("15"), 'I': clock("03"), 'M': clock("04"), 'S': clock("05"),
		'e': fraction(3, time.Millisecond), 'f': fraction(6, time.Microsecond), 'F': fraction(9, time.Nanosecond),
		'p': clock("PM"), 'r': clock("03:04:05 PM"), 'R': clock("15:04"), 'T': clock("15:04:05"), 'X': clock("15:04:05"), 'z': clock("-07:00"),
	}
}

const sourceFlags = "@sg#!"

// shortPath returns the directory and the name of a source file. The rest of
// its path depends on the machine that built the program.
func shortPath(file string) string {
	name := strings.LastIndexByte(file, '/')
	if name < 0 {
		return file
	}
	return file[strings.LastIndexByte(file[:name], '/')+1:]
}

// compileFormat parses a pattern. Unknown flags are literal text.
func compileFormat(pattern string) format {
	var f format
	known := flags()
	text := func(s string) {
		if s != "" {
			f.pieces = append(f.pieces, piece{text: s})
		}
	}
	for {
		before, after, ok := strings.Cut(pattern, "%")
		text(before)
		if !ok {
			return f
		}
		if after == "" {
			text("%")
			return f
		}
		if write, exists := known[after[0]]; exists {
			f.pieces = append(f.pieces, piece{write: write})
			f.source = f.source || strings.IndexByte(sourceFlags, after[0]) >= 0
		} else {
			text("%" + after[:1])
		}
		pattern = after[1:]
	}
}

// append appends one line without the line end.
func (f *format) append(dst []byte, e *event) []byte {
	for _, p := range f.pieces {
		if p.write == nil {
			dst = append(dst, p.text...)
		} else {
			dst = p.write(dst, e)
		}
	}
	return dst
}

// appendPadded appends n, zero-padded to the given number of digits.
func appendPadded(dst []byte, n, digits int) []byte {
	limit := 1
	for range digits - 1 {
		limit *= 10
	}
	for ; limit > 1 && n < limit; limit /= 10 {
		dst = append(dst, '0')
	}
	return strconv.AppendInt(dst, int64(n), 10)
}

// appendJSON escapes text for a JSON string. The text must be UTF-8 without control
// characters.
func appendJSON(dst, text []byte) []byte {
	for _, c := range text {
		if c == '"' || c == '\\' {
			dst = append(dst, '\\')
		}
		dst = append(dst, c)
	}
	return dst
}
