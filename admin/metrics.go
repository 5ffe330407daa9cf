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
	time                  *store.Histogram  // of all requests but streams
	csrf, host, busy      *store.Counter
	unknown               *store.Counter // requests with unknown parameters
	panics                *store.Counter

	unauthenticated, denied     *store.Counter
	handshakes, handshakeErrors *store.Counter

	exposed *store.Gauge // 1: open to other machines, with mutations
}

func newMetrics(st *store.Store) *selfMetrics {
	listener, http, admin := st.Own().Scope("listener.admin"), st.Own().Scope("http.admin"), st.Own().Scope("admin")
	listener.Help(map[string]string{
		"downstream_cx_total": "Accepted connections.", "downstream_cx_active": "Open connections.",
		"downstream_cx_overflow":        "Connections refused because of the limit of the listener.",
		"downstream_global_cx_overflow": "Connections refused because of the limit of all listeners.",
		"ssl.handshake":                 "Completed TLS handshakes.", "ssl.connection_error": "Failed TLS handshakes.",
	})
	http.Help(map[string]string{
		"downstream_rq_total": "Requests.", "downstream_rq_active": "Requests that are being answered.",
		"downstream_rq_2xx": "Responses by class of status.", "downstream_rq_time": "Time from a request to the end of its response, without streams of the administration port.",
	})
	admin.Help(map[string]string{
		"csrf_rejected": "Requests refused because they came from another site.", "host_rejected": "Requests refused for their Host header.",
		"busy_rejected": "Requests refused because too many others were being answered.", "unknown_parameters": "Parameters that no endpoint knows.",
		"auth_rejected": "Requests without valid credentials.", "role_rejected": "Requests refused for the role of the client.",
	})
	st.Own().Scope("server").Help(map[string]string{
		"recovered_panics": "Panics that ended only the request or component in which they happened.",
		"admin_exposed":    "1 if other machines can change the server without authentication.",
	})
	f := &selfMetrics{
		connections:    listener.Counter("downstream_cx_total"),
		rejected:       listener.Counter("downstream_cx_overflow"),
		globalOverflow: listener.Counter("downstream_global_cx_overflow"),
		active:         listener.Gauge("downstream_cx_active"),
		requests:       http.Counter("downstream_rq_total"),
		running:        http.Gauge("downstream_rq_active"),
		time:           http.Histogram("downstream_rq_time", store.Milliseconds),
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
