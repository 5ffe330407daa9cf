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

// Negotiate returns the format that a request with the Accept header accept
// wants: the one with the highest quality. Between equals, one that is named
// precedes one that a wildcard stands for, and then the text format, OpenMetrics
// and protobuf follow in this order. The text format is also the answer to an
// empty header and to one that names nothing of what there is.
//
// The escaping is what the media range asks for that names the format.
func Negotiate(accept string) (Format, Escaping) {
	best, bestRank := FormatText, rank{}
	for f := FormatText; f <= FormatText1; f++ {
		r := f.rankIn(accept)
		if r.quality > bestRank.quality || r.quality > 0 && r.quality == bestRank.quality && r.named > bestRank.named {
			best, bestRank = f, r
		}
	}
	return best, bestRank.escaping
}

// rank is how much a header wants a format: the quality, in thousandths, that
// the range has which names it most closely.
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
			named = -1 // some protobuf message or other
		}
		if named > best.named || named >= 0 && named == best.named && quality > best.quality {
			best = rank{quality, named, escaping}
		}
	}
	return best
}

// named returns how closely a media range names f, -1 if not at all.
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

// takes reports whether f can have a parameter of a media range.
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

// parseQuality returns a quality value in thousandths, 0 for what is none.
func parseQuality(s string) int {
	q, err := strconv.ParseFloat(s, 64)
	if err != nil || !(q >= 0 && q <= 1) {
		return 0
	}
	return int(q*1000 + 0.5)
}
