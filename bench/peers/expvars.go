package peers

import (
	"expvar"
	"io"

	"github.com/statsd-admin/statsd-admin/bench/workload"
)

type expvarMap struct{ *expvar.Map }

func (m expvarMap) write(w io.Writer) error { return errCannot }

func expvars() library {
	return library{
		name: "expvar",
		counter: func() loop {
			c := new(expvar.Int)
			return func(_, n int) {
				for range n {
					c.Add(1)
				}
			}
		},
		gaugeSet: func() loop {
			c := new(expvar.Int)
			return func(_, n int) {
				for i := range n {
					c.Set(int64(i))
				}
			}
		},
		gaugeAdd: func() loop {
			c := new(expvar.Int)
			return func(_, n int) {
				for range n {
					c.Add(1)
				}
			}
		},
		byName: func(names []string) loop {
			m := new(expvar.Map)
			for _, n := range names {
				m.Add(n, 1)
			}
			return func(core, n int) {
				i := core * 97
				for range n {
					m.Add(names[i], 1)
					i = workload.Next(i, len(names))
				}
			}
		},
		create: func(names []string) population {
			m := new(expvar.Map)
			if len(names) > 100_000 {
				return nil // each new key moves all that are greater
			}
			for _, n := range names {
				m.Add(n, 1)
			}
			return expvarMap{m}
		},
		json: func(p population, w io.Writer) error {
			_, err := io.WriteString(w, p.(expvarMap).String())
			return err
		},
	}
}
