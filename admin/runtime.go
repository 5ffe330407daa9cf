package admin

import "github.com/statsd-admin/statsd-admin/internal/wire"

func (s *Server) runtime(w *Response, _ *Request) error {
	var dump RuntimeDump
	if s.src.Runtime != nil {
		dump = s.src.Runtime.Dump()
	}
	var j wire.Writer
	j.BeginObject()
	j.Key("layers").Strings(dump.Layers)
	j.Key("entries").BeginObject()
	for _, e := range dump.Entries {
		j.Key(e.Key).BeginObject()
		j.Key("layer_values").Strings(e.Values)
		j.Key("final_value").String(e.Final)
		j.EndObject()
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
	values := make(map[string]string, len(pairs))
	for _, p := range pairs {
		values[p.Name] = p.Value
	}
	before := finalValues(rt.Dump(), values)
	if err := rt.Modify(values); err != nil {
		return &Error{Status: 503, Msg: err.Error()}
	}
	after := finalValues(rt.Dump(), values)
	for _, p := range pairs {
		r.Changed(p.Name, before[p.Name], after[p.Name])
	}
	return w.text(200, "OK\n")
}

// finalValues returns the values that count of some keys.
func finalValues(dump RuntimeDump, keys map[string]string) map[string]string {
	out := make(map[string]string, len(keys))
	for _, e := range dump.Entries {
		if _, ok := keys[e.Key]; ok {
			out[e.Key] = e.Final
		}
	}
	return out
}
