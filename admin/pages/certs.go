package pages

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/statsd-admin/statsd-admin/certinfo"
)

// certificate is a loaded certificate and its part in a TLS context.
type certificate struct {
	certinfo.Certificate
	path  string
	role  string // own, chain or authority
	until time.Time
}

// title names a certificate by its first name.
func (c *certificate) title() string {
	if len(c.AltNames) > 0 {
		return c.AltNames[0].Value
	}
	return c.path
}

// certificates returns all loaded certificates, the next to expire first.
func (v *view) certificates() (list []certificate) {
	add := func(c certinfo.Certificate, role string) {
		path := cmp.Or(c.Path, certinfo.Inline)
		list = append(list, certificate{c, path, role, c.Until})
	}
	for _, context := range v.src.Certificates() {
		for i, c := range context.Chain {
			role := "own"
			if i > 0 {
				role = "chain"
			}
			add(c, role)
		}
		for _, c := range context.CA {
			add(c, "authority")
		}
	}
	slices.SortStableFunc(list, func(a, b certificate) int { return a.until.Compare(b.until) })
	return list
}

// The days before its end from which a certificate needs attention.
const (
	warnDays = 30
	badDays  = 7
)

// expiry words how long a certificate is valid.
func expiry(until, now time.Time) (meaning, text string) {
	left := until.Sub(now)
	days := int(left / (24 * time.Hour))
	switch {
	case left < 0 && days == 0:
		return "bad", "expired today"
	case left < 0:
		return "bad", "expired " + plural(-days, "day") + " ago"
	case days == 0:
		return "bad", "expires in less than a day"
	case days < badDays:
		return "bad", plural(days, "day") + " left"
	case days < warnDays:
		return "warn", plural(days, "day") + " left"
	}
	return "ok", plural(days, "day") + " left"
}

// expiring returns the number of certificates that are expired or expire soon, this in
// words, and the worst meaning.
func (v *view) expiring() (n int, text, worst string) {
	expired, soon := 0, 0
	for _, c := range v.certificates() { // the first to expire first
		meaning, _ := expiry(c.until, v.now)
		switch {
		case c.until.Before(v.now):
			expired++
		case meaning != "ok":
			soon++
		default:
			continue
		}
		worst = cmp.Or(worst, meaning)
	}
	var words []string
	if expired > 0 {
		words = append(words, count(expired)+" expired")
	}
	switch {
	case soon == 1:
		words = append(words, "1 expires soon")
	case soon > 1:
		words = append(words, count(soon)+" expire soon")
	}
	return expired + soon, strings.Join(words, ", "), worst
}

func showCerts(v *view) error {
	list := v.certificates()
	v.title = "Certificates"
	_, soon, _ := v.expiring()
	v.summary = cmp.Or(soon, plural(len(list), "certificate"))
	if len(list) == 0 {
		return v.nothing("Certificates", "No TLS certificates are loaded. A listener with ", h("<code>tls</code> in <code>statsd.listeners</code> loads one."))
	}
	v.panel("certs", "By expiry", func() { v.actions("certificates", "/certs") }, func() {
		g := v.grid("certificates", "Certificates by expiry", "cards", order{}, column{head: "Names"}, column{head: "Expires"}, column{head: "Valid from"},
			column{head: "Part", title: "own certificate, chain that is sent with it, or authority that verifies others"}, column{head: "Serial number"}, column{head: "OCSP"}, column{head: "File"})
		const most = 1000
		for i := range list[:min(most, len(list))] {
			c := &list[i]
			var names []string
			for _, n := range c.AltNames {
				names = append(names, n.Value)
			}
			g.row("")
			g.head(strings.Join(names, " "), func() { v.altNames(c, names) })
			meaning, text := expiry(c.until, v.now)
			g.cell(isoTime(c.until), func() {
				v.word(meaning, text)
				v.Put(h("<span class='sub'>"))
				v.when(c.until)
				v.Put(h("</span>"))
			})
			g.cell(isoTime(c.From), func() { v.when(c.From) })
			g.cell(c.role, nil)
			serial := cmp.Or(c.SerialNumber, "0")
			g.cell(serial, v.text(h("<code class='wrap'>"), serial, h("</code>")))
			switch {
			case c.OCSP == nil:
				g.cell("", v.text(h("<i>"), none, h("</i>")))
			case c.OCSP.Until.IsZero():
				g.cell("no end", nil)
			default:
				g.cell(isoTime(c.OCSP.Until), func() { v.Put("until "); v.when(c.OCSP.Until) })
			}
			g.cell(c.path, v.text(h("<code class='wrap'>"), c.path, h("</code>")))
		}
		g.end()
		if len(list) > most {
			v.empty(fmt.Sprintf("and %d more", len(list)-most))
		}
	})
	return nil
}

// altNames appends the first names of a certificate; the rest can be unfolded.
func (v *view) altNames(c *certificate, names []string) {
	const first = 3
	if len(names) == 0 {
		v.Put(h("<span class='quiet'>no names</span>"))
		return
	}
	for i, n := range names[:min(first, len(names))] {
		v.Put(h("<span class='wrap block' title='"), c.AltNames[i].Kind, h("'>"), n, h("</span>"))
	}
	if len(names) > first {
		v.Put(h("<details><summary>"), count(len(names)-first), h(" more</summary>"))
		for _, n := range names[first:] {
			v.Put(h("<span class='wrap block'>"), n, h("</span>"))
		}
		v.Put(h("</details>"))
	}
}
