package render

import (
	"strconv"
	"strings"
)

// Format is an exposition format.
type Format uint8

// The exposition formats.
const (
	FormatText        Format = iota // see Exposition
	FormatOpenMetrics               // see OpenMetrics
	FormatProtobuf                  // see Protobuf
	FormatText1                     // as FormatText, by the name of version 1.0.0
)

// ContentType returns the content type of f; see [Escaping.Parameter] for how
// names are escaped.
func (f Format) ContentType() string {
	switch f {
	case FormatOpenMetrics:
		return "application/openmetrics-text; version=1.0.0; charset=utf-8"
	case FormatProtobuf:
		return "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
	case FormatText1:
		return "text/plain; version=1.0.0; charset=utf-8"
	default:
		return "text/plain; version=0.0.4; charset=utf-8"
	}
}

// Negotiate returns the format for a request with the Accept header accept.
//
// The qualities decide only which formats are acceptable. Of the formats that
// the header names, the text format precedes OpenMetrics, whose counters need
// names with the suffix _total; o.PreferOpenMetrics reverses the two. Protobuf
// precedes both if o.Buckets includes native histograms, otherwise it is the
// last resort. Version 1.0.0 of the text format is chosen if the header asks
// for an escaping of names with it, or for no other version. For a header that
// names none of the formats, the result is the first format that its wildcards
// allow, in the order text, OpenMetrics, protobuf, or the text format if there
// is none.
//
// The escaping comes from the media range that names the format.
func Negotiate(accept string, o *Options) (Format, Escaping) {
	var ranks [FormatText1 + 1]rank
	named := false
	for f := range ranks {
		ranks[f] = Format(f).rankIn(accept)
		named = named || ranks[f].quality > 0 && ranks[f].named >= 2
	}
	order := []Format{FormatText, FormatText1, FormatOpenMetrics, FormatProtobuf}
	if named {
		if ranks[FormatText1].escaping != EscapingDefault {
			order[0], order[1] = FormatText1, FormatText
		}
		if o.PreferOpenMetrics {
			order = append([]Format{FormatOpenMetrics}, order...)
		}
		if o.Buckets == Default || o.Buckets == Native {
			order = append([]Format{FormatProtobuf}, order...)
		}
	}
	for _, f := range order {
		if r := ranks[f]; r.quality > 0 && (!named || r.named >= 2) {
			return f, r.escaping
		}
	}
	return FormatText, EscapingDefault
}

// rank is how a header accepts a format: the quality, in thousandths, of the most
// specific media range that matches it.
type rank struct {
	quality  int
	named    int // 3 with parameters, 2 without, 1 by text/*, 0 by */*
	escaping Escaping
}

func (f Format) rankIn(accept string) rank {
	best := rank{named: -1}
	for r := range strings.SplitSeq(accept, ",") {
		kind, params, _ := strings.Cut(r, ";")
		named, quality, escaping := f.named(strings.ToLower(strings.TrimSpace(kind))), 1000, EscapingDefault
		for p := range strings.SplitSeq(params, ";") {
			key, value, ok := strings.Cut(strings.TrimSpace(p), "=")
			if !ok || named < 0 {
				continue
			}
			value = strings.Trim(strings.TrimSpace(value), `"`)
			switch key = strings.ToLower(strings.TrimSpace(key)); key {
			case "q":
				quality = parseQuality(value)
			case "escaping":
				escaping = parseEscaping(value)
			case "version", "proto", "encoding":
				if !f.takes(key, value) {
					named = -1
				} else {
					named = max(named, 3)
				}
			}
		}
		if f == FormatProtobuf && named == 2 {
			named = -1 // an unknown protobuf message
		}
		if named > best.named || named >= 0 && named == best.named && quality > best.quality {
			best = rank{quality, named, escaping}
		}
	}
	return best
}

// named returns how specifically a media range names f, -1 if not at all.
func (f Format) named(mediaRange string) int {
	full, _, _ := strings.Cut(f.ContentType(), ";")
	major, _, _ := strings.Cut(full, "/")
	switch mediaRange {
	case full:
		return 2
	case major + "/*":
		return 1
	case "*/*":
		return 0
	}
	return -1
}

// takes reports whether f has the parameter of a media range.
func (f Format) takes(key, value string) bool {
	switch f {
	case FormatText:
		return key == "version" && value == "0.0.4"
	case FormatOpenMetrics, FormatText1:
		return key == "version" && value == "1.0.0"
	default:
		return key == "proto" && value == "io.prometheus.client.MetricFamily" || key == "encoding" && value == "delimited"
	}
}

// parseQuality returns a quality value in thousandths, 0 if s is not one.
func parseQuality(s string) int {
	q, err := strconv.ParseFloat(s, 64)
	if err != nil || !(q >= 0 && q <= 1) {
		return 0
	}
	return int(q*1000 + 0.5)
}
