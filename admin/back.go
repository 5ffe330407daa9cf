package admin

import (
	"net/url"
	"strconv"
	"strings"
)

// backToPage turns the response to a form of a live page into a redirect back to the
// page. The parameter "done" of its location is the number of the audit
// entry, from which the page shows the change. Only browsers accept text/html, so
// programs get the plain response.
func (w *Response) backToPage(r *Request, seq uint64) {
	page := refererPage(r)
	if page == "" || w.status != 200 || w.stage != stageBuffer || !strings.Contains(r.Header("accept"), "text/html") {
		return
	}
	w.SetStatus(303)
	w.SetHeader("location", strings.Repeat("../", strings.Count(r.path, "/")-1)+page+"done="+strconv.FormatUint(seq, 10))
}

// refererPage returns the live page that r comes from, relative to the root, up to
// and including the '?' or '&' that precedes a further parameter. It returns "" if
// r comes from elsewhere.
func refererPage(r *Request) string {
	from, err := url.Parse(r.Header("referer"))
	if err != nil || from.Host != r.host {
		return ""
	}
	_, name, found := strings.Cut(from.Path, livePages)
	if !found || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz") != "" {
		return ""
	}
	query := "?"
	for piece := range strings.SplitSeq(from.RawQuery, "&") {
		if piece != "" && !strings.HasPrefix(piece, "done=") && strings.IndexFunc(piece, unsafeInQuery) < 0 {
			query += piece + "&"
		}
	}
	return livePages[1:] + name + query
}

// livePages is the path prefix of the pages of package admin/pages.
const livePages = "/ui/"

func unsafeInQuery(c rune) bool {
	return !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.ContainsRune("%=-_.~*", c))
}
