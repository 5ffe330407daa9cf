package admin

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/statsd-admin/statsd-admin/admin/ui"
)

func (s *Server) help(w *Response, r *Request) error {
	return w.all(typeText, s.appendHelp(nil, s.modeOf(r)))
}

// appendHelp appends the list of all endpoints in a mode. It is also the body of a 404.
func (s *Server) appendHelp(dst []byte, mode Mode) []byte {
	dst = append(dst, "admin commands are:\n"...)
	for _, e := range s.endpointsIn(mode) {
		dst = append(append(dst, "  "...), e.Path...)
		if e.Mutates {
			dst = append(dst, " (POST)"...)
		}
		dst = append(append(append(dst, ": "...), e.Help...), '\n')
		for _, p := range e.Params {
			dst = append(append(dst, "      "...), p.Name...)
			dst = append(append(dst, ": "...), p.Help...)
			if p.Kind == ParamChoice {
				dst = append(append(append(dst, "; One of ("...), strings.Join(p.Choices, ", ")...), ')')
			}
			dst = append(dst, '\n')
		}
	}
	return dst
}

// capital returns a name with its first letter in upper case.
func capital(name string) string {
	r, size := utf8.DecodeRuneInString(name)
	return string(unicode.ToUpper(r)) + name[size:]
}

// asset serves a file whose contents never change under its name.
func (w *Response) asset(a *ui.Asset) error {
	w.SetHeader("cache-control", "public, max-age=31536000, immutable")
	w.varyBy("accept-encoding")
	body := a.Raw
	switch chooseEncoding(w.encodings) {
	case "gzip":
		if packed := a.Gzip(); packed != nil {
			w.SetHeader("content-encoding", "gzip")
			body = packed
		}
	case "zstd":
		if packed := a.Zstd(); packed != nil {
			w.SetHeader("content-encoding", "zstd")
			body = packed
		}
	}
	w.encodings = nil
	return w.all(a.ContentType, body)
}
