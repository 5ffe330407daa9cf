package admin

import (
	"errors"

	"github.com/statsd-admin/statsd-admin/internal/jsontext"
	"github.com/statsd-admin/statsd-admin/internal/redact"
	"github.com/statsd-admin/statsd-admin/server/layers"
)

func (s *Server) runtime(w *Response, _ *Request) error {
	var j jsontext.Writer
	j.BeginObject()
	if s.src.Runtime == nil {
		j.Key("layers").Strings(nil)
		j.Key("entries").BeginObject()
	} else {
		snapshot := s.src.Runtime.Snapshot()
		j.Key("layers").Strings(snapshot.Layers())
		j.Key("entries").BeginObject()
		for key, v := range snapshot.All() {
			j.Key(key).BeginObject()
			j.Key("layer_values").BeginList()
			for _, value := range v.PerLayer {
				j.String(redact.Masked(key, value))
			}
			j.EndList()
			j.Key("final_value").String(redact.Masked(key, v.Final))
			j.EndObject()
		}
	}
	j.EndObject()
	j.EndObject()
	return w.json(j.Bytes())
}

const runtimeUsage = `usage: /runtime_modify?key1=value1&key2=value2&keyN=valueN
       or send the parameters as form values
use an empty value to remove a previously added override`

func (s *Server) runtimeModify(w *Response, r *Request) error {
	pairs := r.query.Distinct()
	if len(pairs) == 0 {
		return badRequest(runtimeUsage)
	}
	rt := s.src.Runtime
	if rt == nil {
		return &Error{Status: 503, Msg: "No admin layer specified"}
	}
	values, names := make(map[string]string, len(pairs)), pairs.Keys()
	for _, p := range pairs {
		values[p.Name] = p.Value
	}
	before := rt.Snapshot()
	after, err := before, error(nil)
	if r.DryRun() {
		after, err = rt.Preview(values)
	} else if err = rt.Modify(values); err == nil {
		after = rt.Snapshot()
	}
	if _, ok := errors.AsType[*layers.LimitError](err); ok {
		return &Error{Status: 400, Msg: err.Error()}
	} else if err != nil {
		return &Error{Status: 503, Msg: err.Error()}
	}
	r.Sets(names...)
	for _, name := range names {
		was, _ := before.Get(name)
		is, _ := after.Get(name)
		r.Changed(name, was, is)
	}
	return w.text(200, "OK\n")
}
