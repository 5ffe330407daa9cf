package admin

import (
	"cmp"
	"time"

	"github.com/statsd-admin/statsd-admin/certinfo"
	"github.com/statsd-admin/statsd-admin/internal/jsontext"
)

func (s *Server) certs(w *Response, _ *Request) error {
	now := s.now()
	var j jsontext.Writer
	j.BeginObject()
	j.Key("certificates").BeginList()
	for _, c := range s.src.Certificates() {
		j.BeginObject()
		j.Key("ca_cert")
		writeCertificates(&j, c.CA, now)
		j.Key("cert_chain")
		writeCertificates(&j, c.Chain, now)
		j.EndObject()
	}
	j.EndList()
	j.EndObject()
	return w.json(j.Bytes())
}

func writeCertificates(j *jsontext.Writer, list []certinfo.Certificate, now time.Time) {
	j.BeginList()
	for _, c := range list {
		j.BeginObject()
		j.Key("path").String(cmp.Or(c.Path, certinfo.Inline))
		j.Key("serial_number").String(cmp.Or(c.SerialNumber, "0"))
		j.Key("subject_alt_names").BeginList()
		for _, n := range c.AltNames {
			j.BeginObject()
			j.Key(n.Kind).String(n.Value)
			j.EndObject()
		}
		j.EndList()
		j.Key("days_until_expiration").Uint64(c.DaysLeft(now))
		j.Key("valid_from").Time(c.From)
		j.Key("expiration_time").Time(c.Until)
		if c.OCSP != nil {
			j.Key("ocsp_details").BeginObject()
			j.Key("valid_from").Time(c.OCSP.From)
			j.Key("expiration").Time(c.OCSP.Until)
			j.EndObject()
		}
		j.EndObject()
	}
	j.EndList()
}
