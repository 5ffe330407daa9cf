package admin

import (
	"cmp"
	"slices"
	"strings"
)

// originCheck refuses requests that a browser sends on behalf of another site's page.
// It is immutable.
type originCheck struct {
	allowed []string // scheme://host[:port], lower case
}

func newOriginCheck(allowed []string) *originCheck {
	o := &originCheck{}
	for _, origin := range allowed {
		o.allowed = append(o.allowed, strings.ToLower(strings.TrimSuffix(origin, "/")))
	}
	return o
}

func (o *originCheck) allows(origin string) bool {
	origin = strings.ToLower(origin)
	return slices.Contains(o.allowed, origin)
}

// refuses returns the name of the header that identifies a request with side effects
// as cross-site, or "". A request with neither header does not come from a browser.
// Browsers omit Sec-Fetch-Site over plain HTTP except on loopback, and call another
// port of the same host "same-site", which is refused, too.
func (o *originCheck) refuses(r *Request) (header string) {
	sites, origins := r.headers("sec-fetch-site"), r.headers("origin")
	if len(sites) > 1 {
		return "sec-fetch-site"
	}
	if len(origins) > 1 {
		return "origin"
	}
	if len(sites) == 1 {
		if sites[0] == "same-origin" || sites[0] == "none" {
			return ""
		}
		if len(origins) == 1 && o.allows(origins[0]) {
			return ""
		}
		return "sec-fetch-site"
	}
	if len(origins) == 0 || sameOrigin(origins[0], r.host) || o.allows(origins[0]) {
		return ""
	}
	return "origin"
}

// sameOrigin reports whether origin is the origin of the server at hostport.
func sameOrigin(origin, hostport string) bool {
	var standard string
	rest, ok := strings.CutPrefix(strings.ToLower(origin), "http://")
	if ok {
		standard = "80"
	} else if rest, ok = strings.CutPrefix(strings.ToLower(origin), "https://"); ok {
		standard = "443"
	} else {
		return false
	}
	host1, port1, ok1 := splitHostPort(rest)
	host2, port2, ok2 := splitHostPort(strings.ToLower(hostport))
	port1 = cmp.Or(port1, standard)
	port2 = cmp.Or(port2, standard)
	return ok1 && ok2 && host1 == host2 && port1 == port2
}
