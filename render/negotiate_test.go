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
		{"prometheus", "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1", FormatText1},
		{"prometheus-native", proto + ";escaping=allow-utf-8;q=0.6," + om + ";q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.2", FormatProtobuf},
		{"parameter-without-value-first", "application/openmetrics-text;x;version=0.0.1,text/plain;q=0.1", FormatText},
		{"parameter-without-value-before-protobuf", "application/vnd.google.protobuf;x;proto=io.prometheus.client.MetricFamily;encoding=delimited", FormatProtobuf},
		{"old-prometheus", "application/openmetrics-text; version=0.0.1,text/plain;version=0.0.4;q=0.5,*/*;q=0.1", FormatText},
		{"equal", om + ",text/plain;version=0.0.4", FormatText},
		{"equal-protobuf", proto + "," + om, FormatProtobuf},
		{"named-before-wildcard", om + ",*/*", FormatOpenMetrics},
		{"lower-quality", om + ";q=0.4,text/plain;q=0.5", FormatText},
		{"named-without-version-before-wildcard", "application/openmetrics-text,*/*", FormatOpenMetrics},
		{"refused", om + ";q=0,*/*;q=0.1", FormatText},
		{"text-refused", "text/plain;q=0,*/*;q=0.1", FormatOpenMetrics},
		{"three-digits", om + ";q=0.501,text/plain;q=0.5", FormatText},
		{"least-quality", om + ";q=0.001,*/*", FormatOpenMetrics},
		{"bad-quality", om + ";q=2", FormatText},
		{"quoted-and-upper-case", `Application/OpenMetrics-Text; Version="1.0.0"; Q=1`, FormatOpenMetrics},
		{"application-wildcard", "application/*", FormatOpenMetrics},
		{"text-1", "text/plain;version=1.0.0", FormatText1},
		{"text-1-first", "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1", FormatText1},
		{"text-wildcard", "text/*;q=0.1", FormatText},
		{"narrow-wildcard-first", "text/*;q=0.1,*/*", FormatText},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got, _ := Negotiate(tt.accept, &Options{}); got != tt.want {
				t.Errorf("Negotiate(%q) = %d, want %d", tt.accept, got, tt.want)
			}
		})
	}
}

// TestNegotiatePreference uses the headers of Prometheus with and without native
// histograms.
func TestNegotiatePreference(t *testing.T) {
	const (
		om      = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
		proto   = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.1,"
		text    = "text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
		text1   = "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,"
		refused = "text/plain;q=0"
	)
	for _, tt := range []struct {
		name, accept string
		o            Options
		want         Format
	}{
		{"text-1", om + text1 + text, Options{}, FormatText1},
		{"text-old", om + text, Options{}, FormatText},
		{"text-1-unescaped", "text/plain;version=1.0.0," + text, Options{}, FormatText},
		{"prefer", om + text1 + text, Options{PreferOpenMetrics: true}, FormatOpenMetrics},
		{"prefer-not-accepted", text1 + text, Options{PreferOpenMetrics: true}, FormatText1},
		{"prefer-wildcard", "*/*", Options{PreferOpenMetrics: true}, FormatText},
		{"alone", om + refused, Options{}, FormatOpenMetrics},
		{"native", proto + om + text1 + text, Options{}, FormatProtobuf},
		{"native-only", proto + om + text1 + text, Options{Buckets: Native}, FormatProtobuf},
		{"native-prefer", proto + om + text1 + text, Options{PreferOpenMetrics: true}, FormatProtobuf},
		{"cumulative", proto + om + text1 + text, Options{Buckets: Cumulative}, FormatText1},
		{"cumulative-alone", proto + refused, Options{Buckets: Cumulative}, FormatProtobuf},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got, _ := Negotiate(tt.accept, &tt.o); got != tt.want {
				t.Errorf("Negotiate(%q) = %d, want %d", tt.accept, got, tt.want)
			}
		})
	}
}

// TestNegotiateEscaping uses what Prometheus sends with each of its settings
// for the escaping of names, and what others could.
func TestNegotiateEscaping(t *testing.T) {
	prometheus := func(escaping string) string {
		return "application/openmetrics-text;version=1.0.0;escaping=" + escaping + ";q=0.6,application/openmetrics-text;version=0.0.1;q=0.5," +
			"text/plain;version=1.0.0;escaping=" + escaping + ";q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
	}
	for _, tt := range []struct {
		name, accept string
		want         Escaping
	}{
		{"none", "", EscapingDefault},
		{"unsaid", "text/plain;version=0.0.4", EscapingDefault},
		{"utf-8", prometheus("allow-utf-8"), AllowUTF8},
		{"underscores", prometheus("underscores"), EscapeUnderscores},
		{"dots", prometheus("dots"), EscapeDots},
		{"values", prometheus("values"), EscapeValues},
		{"unknown", prometheus("emojis"), EscapingDefault},
		{"empty", prometheus(""), EscapingDefault},
		{"text", "text/plain;version=0.0.4;escaping=allow-utf-8", AllowUTF8},
		{"protobuf", "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;escaping=allow-utf-8;q=0.6,text/plain;q=0.3", AllowUTF8},
		{"of-the-answer", "application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;escaping=allow-utf-8;q=0.5", AllowUTF8},
		{"of-the-better-wildcard", "*/*;q=0.1;escaping=values,*/*;q=0.9;escaping=dots,*/*;q=0.5;escaping=values", EscapeDots},
		{"of-the-first-of-equals", "text/plain;escaping=dots,text/plain;escaping=values", EscapeDots},
		{"of-the-wildcard", "*/*;escaping=dots", EscapeDots},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, got := Negotiate(tt.accept, &Options{}); got != tt.want {
				t.Errorf("Negotiate(%q): escaping %q, want %q", tt.accept, got, tt.want)
			}
		})
	}
}

func TestContentTypes(t *testing.T) {
	for f, want := range map[Format]string{
		FormatText:        "text/plain; version=0.0.4; charset=utf-8",
		FormatOpenMetrics: "application/openmetrics-text; version=1.0.0; charset=utf-8",
		FormatProtobuf:    "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited",
		FormatText1:       "text/plain; version=1.0.0; charset=utf-8",
	} {
		if got := f.ContentType(); got != want {
			t.Errorf("content type of format %d: %q, want %q", f, got, want)
		}
		if got, _ := Negotiate(want, &Options{}); got != f {
			t.Errorf("Negotiate(%q) = %d, want %d", want, got, f)
		}
	}
}

func FuzzNegotiate(f *testing.F) {
	f.Add("text/plain;q=0.1, */*")
	f.Fuzz(func(t *testing.T, accept string) {
		format, escaping := Negotiate(accept, &Options{})
		if format > FormatText1 || escaping > EscapeValues {
			t.Errorf("Negotiate(%q) = %d, %d", accept, format, escaping)
		}
		// Saying the answer gives the same answer.
		again, same := Negotiate(format.ContentType()+escaping.Parameter(), &Options{})
		if again != format || same != escaping {
			t.Errorf("Negotiate(%q) = %q%q, which asks for %d, %d", accept, format.ContentType(), escaping.Parameter(), again, same)
		}
	})
}
