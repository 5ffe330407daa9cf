package admin

import "strings"

// originCheck refuses requests that a browser sends on behalf of a foreign web
// page. It is immutable.
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
	for _, a := range o.allowed {
		if origin == a {
			return true
		}
	}
	return false
}

// refuses returns the name of the header that shows that a request with side
// effects comes from a foreign page, "" if none does. A request with neither
// header does not come from a browser. Browsers leave out Sec-Fetch-Site on
// plain HTTP outside of loopback, and another port of the same host is
// "same-site" for them, which is as foreign as any other.
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

// sameOrigin reports whether origin is a page of the server that is addressed
// by hostport.
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
	if port1 == "" {
		port1 = standard
	}
	if port2 == "" {
		port2 = standard
	}
	return ok1 && ok2 && host1 == host2 && port1 == port2
}
