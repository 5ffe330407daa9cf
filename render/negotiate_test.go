package render

import "testing"

func TestNegotiate(t *testing.T) {
	const (
		om    = "application/openmetrics-text;version=1.0.0"
		proto = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"
	)
	for _, tt := range []struct {
		name, accept string
		want         Format
	}{
		{"none", "", FormatText},
		{"anything", "*/*", FormatText},
		{"browser", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", FormatText},
		{"text", "text/plain;version=0.0.4", FormatText},
		{"nonsense", ";;,=,q=1;q", FormatText},
		{"unknown", "image/png", FormatText},
		{"openmetrics", om, FormatOpenMetrics},
		{"openmetrics-no-version", "application/openmetrics-text", FormatOpenMetrics},
		{"openmetrics-old-version", "application/openmetrics-text; version=0.0.1", FormatText},
		{"protobuf", proto, FormatProtobuf},
		{"protobuf-without-parameters", "application/vnd.google.protobuf", FormatText},
		{"protobuf-other-message", "application/vnd.google.protobuf;proto=a.B;encoding=delimited", FormatText},
		{"protobuf-other-encoding", "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=text", FormatText},
		{"prometheus", "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1", FormatOpenMetrics},
		{"prometheus-native", proto + ";escaping=allow-utf-8;q=0.6," + om + ";q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.2", FormatProtobuf},
		{"old-prometheus", "application/openmetrics-text; version=0.0.1,text/plain;version=0.0.4;q=0.5,*/*;q=0.1", FormatText},
		{"equal", om + ",text/plain;version=0.0.4", FormatText},
		{"equal-protobuf", proto + "," + om, FormatOpenMetrics},
		{"named-before-wildcard", om + ",*/*", FormatOpenMetrics},
		{"lower-quality", om + ";q=0.4,text/plain;q=0.5", FormatText},
		{"refused", om + ";q=0,*/*;q=0.1", FormatText},
		{"text-refused", "text/plain;q=0,*/*;q=0.1", FormatOpenMetrics},
		{"three-digits", om + ";q=0.501,text/plain;q=0.5", FormatOpenMetrics},
		{"bad-quality", om + ";q=2", FormatText},
		{"quoted-and-upper-case", `Application/OpenMetrics-Text; Version="1.0.0"; Q=1`, FormatOpenMetrics},
		{"application-wildcard", "application/*", FormatOpenMetrics},
		{"text-wildcard", "text/*;q=0.1", FormatText},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Negotiate(tt.accept); got != tt.want {
				t.Errorf("Negotiate(%q) = %d, want %d", tt.accept, got, tt.want)
			}
		})
	}
}

func TestContentTypes(t *testing.T) {
	for f, want := range map[Format]string{
		FormatText:        "text/plain; version=0.0.4; charset=utf-8",
		FormatOpenMetrics: "application/openmetrics-text; version=1.0.0; charset=utf-8",
		FormatProtobuf:    "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited",
	} {
		if got := f.ContentType(); got != want {
			t.Errorf("content type of format %d: %q, want %q", f, got, want)
		}
		if got := Negotiate(want); got != f {
			t.Errorf("Negotiate(%q) = %d, want %d", want, got, f)
		}
	}
}

func FuzzNegotiate(f *testing.F) {
	f.Add("text/plain;q=0.1, */*")
	f.Fuzz(func(t *testing.T, accept string) {
		if got := Negotiate(accept); got > FormatProtobuf {
			t.Errorf("Negotiate(%q) = %d", accept, got)
		}
	})
}
