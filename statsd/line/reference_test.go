package line

import (
	"cmp"
	"math"
	"math/big"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The reference reads a line the slow way: it splits everything, keeps maps,
// and runs the checks one after the other as the rules are numbered. It shares
// no code with the parser.

type refSample struct {
	typ    string
	rate   float64
	text   string
	values []Value
}

type refLine struct {
	kind      Kind
	name      string
	tags      map[string]string
	tagErrors int
	unknown   int
	time      int64
	samples   []refSample
}

var (
	refNumber  = regexp.MustCompile(`^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$`)
	refSpecial = regexp.MustCompile(`(?i)^[+-]?(nan|inf|infinity)$`)
	refTypes   = map[string]bool{"c": true, "g": true, "ms": true, "h": true, "d": true, "s": true}
)

func refParse(cfg Config, text string) (refLine, string) {
	cfg = cfg.withDefaults()
	on := func(s Styles) bool { return cfg.Off&s == 0 }
	none := refLine{tags: map[string]string{}}

	// Step 1, 2, 3.
	text = strings.Trim(strings.TrimSuffix(text, "\r"), " \t")
	if text == "" {
		return none, "ok"
	}
	if len(text) > cfg.LineBytes {
		return none, "line_too_long"
	}
	if !utf8.ValidString(text) {
		return none, "invalid_utf8"
	}
	// Step 4.
	if strings.HasPrefix(text, "_e{") {
		none.kind = KindEvent
		return none, "ok"
	}
	if strings.HasPrefix(text, "_sc|") {
		none.kind = KindServiceCheck
		return none, "ok"
	}
	out := refLine{kind: KindMetric, tags: map[string]string{}}

	// Step 5, 6, 7.
	colon := strings.Index(text, ":")
	if on(SignalFX) && colon >= 0 {
		open, shut := strings.Index(text, "["), strings.Index(text, "]")
		pipe := strings.Index(text+"|", "|")
		if open >= 0 && shut >= 0 && open < colon && open < shut && open < pipe && shut < pipe {
			colon = -1
			for i := shut; i < len(text); i++ {
				if text[i] == ':' {
					colon = i
					break
				}
			}
		}
	}
	if colon < 0 || strings.Contains(text[:colon], "|") {
		return out, "missing_colon"
	}
	section, rest := text[:colon], text[colon+1:]
	if section == "" {
		return out, "empty_name"
	}
	if !strings.Contains(rest, "|") {
		return out, "missing_pipe"
	}

	// Step 8, 9.
	name, pairs := refNameSection(on, section)
	name = strings.TrimRight(refClean(name), ".")
	if name == "" {
		return out, "empty_name"
	}
	out.name = name
	if len(name) > cfg.NameBytes {
		return out, "name_too_long"
	}
	if len(strings.Split(name, ".")) > cfg.Segments {
		return out, "too_many_segments"
	}
	nameTags := 0
	for _, pair := range pairs {
		kv := strings.SplitN(pair, "=", 2)
		if len(kv) < 2 || kv[0] == "" || kv[1] == "" {
			out.tagErrors++
			continue
		}
		nameTags++
		out.tags[refClean(kv[0])] = refClean(kv[1])
	}

	// Step 10.
	parts := strings.Split(rest, "|")
	value, expectType := parts[0], true
	container, hasContainer := "", false
	var tagTexts []string
	for _, field := range parts[1:] {
		head, tail, further := strings.Cut(field, ":")
		if expectType {
			if !refTypes[head] {
				return out, "bad_type"
			}
			out.samples = append(out.samples, refSample{typ: head, rate: 1, text: value})
			value, expectType = tail, further
			continue
		}
		switch {
		case field == "":
		case strings.HasPrefix(field, "@"):
			rate, ok := refRate(head[1:])
			if !ok {
				return out, "bad_sample_rate"
			}
			out.samples[len(out.samples)-1].rate = rate
			value, expectType = tail, further
		case strings.HasPrefix(field, "#") && on(DogStatsD):
			tagTexts = append(tagTexts, strings.Split(field[1:], ",")...)
		case strings.HasPrefix(field, "c:"):
			container, hasContainer = field[2:], true
		case strings.HasPrefix(field, "e:"), strings.HasPrefix(field, "card:"):
		default:
			if n, err := strconv.ParseUint(strings.TrimPrefix(field, "T"), 10, 62); err == nil && field[0] == 'T' {
				out.time = int64(n)
				break
			}
			out.unknown++
		}
	}
	if expectType {
		return out, "missing_pipe"
	}

	// Step 11, 12.
	hashTags := 0
	for _, t := range tagTexts {
		t = strings.TrimPrefix(t, "#")
		if t == "" {
			continue
		}
		k, v, _ := strings.Cut(t, ":")
		if k == "" {
			out.tagErrors++
			continue
		}
		hashTags++
		out.tags[refClean(k)] = refClean(v)
	}
	if nameTags > 0 && hashTags > 0 {
		return out, "mixed_tag_styles"
	}
	if hasContainer && cfg.TagContainer {
		if s, ok := strings.CutPrefix(container, "ci-"); ok {
			container = s
		} else if s, ok := strings.CutPrefix(container, "cid-"); ok {
			container = s
		}
		if container == "" {
			out.tagErrors++
		} else {
			out.tags["container_id"] = refClean(container)
		}
	}
	if len(out.tags) > cfg.Tags {
		return out, "too_many_tags"
	}
	for k, v := range out.tags {
		if len(k) > cfg.TagKeyBytes || len(v) > cfg.TagValueBytes {
			return out, "tag_too_long"
		}
	}

	// Step 13.
	for i := range out.samples {
		if reason := refValues(&out.samples[i]); reason != "ok" {
			return out, reason
		}
	}
	return out, "ok"
}

func refNameSection(on func(Styles) bool, section string) (name string, pairs []string) {
	split := func(s, sep string) []string {
		if s == "" {
			return nil
		}
		return strings.Split(s, sep)
	}
	if on(SignalFX) && strings.ContainsAny(section, "[]") {
		before, inside, ok := strings.Cut(section, "[")
		pairs, after, closed := strings.Cut(inside, "]")
		if !ok || !closed || strings.Contains(before, "]") {
			return section, nil
		}
		return before + after, split(pairs, ",")
	}
	marks := map[Styles]string{Librato: "#", Influx: ",", Graphite: ";"}
	set := ""
	for style, mark := range marks {
		if on(style) {
			set += mark
		}
	}
	at := strings.IndexAny(section, set)
	if at < 0 {
		return section, nil
	}
	sep := ","
	if section[at] == ';' {
		sep = ";"
	}
	return section[:at], split(section[at+1:], sep)
}

func refClean(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 || r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029 {
			return '_'
		}
		return r
	}, s)
}

// refFloat reads a number with at most 19 digits, which is not close to zero.
func refFloat(s string) float64 {
	digits, exponent, _ := strings.Cut(strings.ToLower(s), "e")
	cut, n := []byte(digits), 0
	for i, c := range cut {
		if n > 0 && c == '0' || c >= '1' && c <= '9' {
			if n++; n > 19 {
				cut[i] = '0'
			}
		}
	}
	f, _ := strconv.ParseFloat(string(cut)+"e"+cmp.Or(exponent, "0"), 64)
	if math.Abs(f) < 0x1p-1022 {
		return 0
	}
	return f
}

func refRate(s string) (float64, bool) {
	if !refNumber.MatchString(s) {
		return 0, false
	}
	f, err := strconv.ParseFloat(s, 64)
	return f, err == nil && f >= 0.000001 && f <= 1
}

func refValues(s *refSample) string {
	if s.typ == "s" {
		if s.text == "" {
			return "empty_value"
		}
		return "ok"
	}
	for _, part := range strings.Split(s.text, ":") {
		if part == "" {
			continue
		}
		if refSpecial.MatchString(part) {
			return "not_finite"
		}
		if !refNumber.MatchString(part) {
			return "bad_value"
		}
		f := refFloat(part)
		if math.IsInf(f, 0) {
			return "not_finite"
		}
		if f == 0 {
			f = 0 // not -0
		}
		switch {
		case s.typ == "c" && f < 0:
			return "negative_counter"
		case s.typ == "c" && f/s.rate > math.Ldexp(1, 53):
			return "out_of_range"
		case s.typ == "ms" && f < 0:
			return "negative_timer"
		}
		s.values = append(s.values, Value{f, strings.ContainsAny(part[:1], "+-")})
	}
	if s.values == nil {
		return "empty_value"
	}
	return "ok"
}

// refTags returns tags as the parser lists them.
func refTags(tags map[string]string) []string {
	var out []string
	for k, v := range tags {
		out = append(out, k+"\x00"+v)
	}
	sort.Strings(out)
	return out
}

// refEvent reads an event by a regular expression and cutting by lengths.
func refEvent(text string) (title, body string, ok bool) {
	m := regexp.MustCompile(`(?s)^_e\{([0-9]+),([0-9]+)\}:(.*)$`).FindStringSubmatch(text)
	if m == nil {
		return "", "", false
	}
	a, _ := new(big.Int).SetString(m[1], 10)
	b, _ := new(big.Int).SetString(m[2], 10)
	room := big.NewInt(int64(len(m[3])))
	need := new(big.Int).Add(new(big.Int).Add(a, b), big.NewInt(1))
	if a.Sign() == 0 || need.Cmp(room) > 0 {
		return "", "", false
	}
	t, n := int(a.Int64()), int(b.Int64())
	rest := m[3][t:]
	if rest[0] != '|' {
		return "", "", false
	}
	if end := rest[1+n:]; end != "" && end[0] != '|' {
		return "", "", false
	}
	return strings.ReplaceAll(m[3][:t], `\n`, "\n"), strings.ReplaceAll(rest[1:1+n], `\n`, "\n"), true
}

// refCheck reads a service check by splitting.
func refCheck(text string) (name string, status int, ok bool) {
	parts := strings.Split(text, "|")
	if len(parts) < 3 || parts[1] == "" {
		return "", 0, false
	}
	status = strings.Index("0123", parts[2])
	if len(parts[2]) != 1 || status < 0 {
		return "", 0, false
	}
	return refClean(parts[1]), status, true
}
