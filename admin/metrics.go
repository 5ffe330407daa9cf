package admin

import "github.com/statsd-admin/statsd-admin/store"

// selfMetrics are the server's own stats.
type selfMetrics struct {
	connections, rejected *store.Counter
	globalOverflow        *store.Counter
	active                *store.Gauge
	requests              *store.Counter
	running               *store.Gauge
	classes               [5]*store.Counter // by hundreds of the status
	csrf, host, busy      *store.Counter
	unknown               *store.Counter // requests with unknown parameters
	panics                *store.Counter

	unauthenticated, denied     *store.Counter
	handshakes, handshakeErrors *store.Counter

	exposed *store.Gauge // 1: open to other machines, with mutations
}

func newMetrics(st *store.Store) *selfMetrics {
	listener, http, admin := st.Own().Scope("listener.admin"), st.Own().Scope("http.admin"), st.Own().Scope("admin")
	f := &selfMetrics{
		connections:    listener.Counter("downstream_cx_total"),
		rejected:       listener.Counter("downstream_cx_overflow"),
		globalOverflow: listener.Counter("downstream_global_cx_overflow"),
		active:         listener.Gauge("downstream_cx_active"),
		requests:       http.Counter("downstream_rq_total"),
		running:        http.Gauge("downstream_rq_active"),
		csrf:           admin.Counter("csrf_rejected"),
		host:           admin.Counter("host_rejected"),
		busy:           admin.Counter("busy_rejected"),
		unknown:        admin.Counter("unknown_parameters"),

		unauthenticated: admin.Counter("auth_rejected"),
		denied:          admin.Counter("role_rejected"),
		handshakes:      listener.Counter("ssl.handshake"),
		handshakeErrors: listener.Counter("ssl.connection_error"),

		panics:  st.Own().Scope("server").Counter("recovered_panics"),
		exposed: st.Own().Scope("server").GaugeWithMode("admin_exposed", store.NeverImport),
	}
	for i, name := range [...]string{"1xx", "2xx", "3xx", "4xx", "5xx"} {
		f.classes[i] = http.Counter("downstream_rq_" + name)
	}
	return f
}

// answered counts a response.
func (f *selfMetrics) answered(status int) {
	f.requests.Inc()
	if class := status/100 - 1; 0 <= class && class < len(f.classes) {
		f.classes[class].Inc()
	}
}
