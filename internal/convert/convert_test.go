package convert

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/internal/golden"
)

// inputs returns the files of testdata with the program of each.
func inputs(t testing.TB) map[string]Program {
	t.Helper()
	files, err := filepath.Glob("testdata/*")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]Program{}
	for _, f := range files {
		if filepath.Ext(f) == ".golden" || filepath.Base(f) == "fuzz" {
			continue
		}
		program, _, _ := strings.Cut(strings.ReplaceAll(filepath.Base(f), "-", "."), ".")
		all[f] = Program(program)
	}
	return all
}

// TestConvert has a configuration and the notes about it for each file.
func TestConvert(t *testing.T) {
	for file, from := range inputs(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		r, err := Convert(from, filepath.Base(file), text, nil)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		var b bytes.Buffer
		b.Write(r.YAML)
		b.WriteString("--- notes\n")
		for _, n := range r.Notes {
			fmt.Fprintln(&b, n)
		}
		golden.Check(t, filepath.Base(file), b.Bytes())
		if n := bytes.Count(r.YAML, []byte("(line ")); n != len(r.Notes) {
			t.Errorf("%s: %d comments for %d notes", file, n, len(r.Notes))
		}
		marked, err := Convert(from, filepath.Base(file), append([]byte("\ufeff"), text...), nil)
		if err != nil || !bytes.Equal(marked.YAML, r.YAML) {
			t.Errorf("%s behind a byte order mark: %v", file, err)
		}
	}
}

// TestErrors has the position of each error.
func TestErrors(t *testing.T) {
	for _, tt := range []struct {
		from       Program
		file, text string
		want       []string
	}{
		{Statsd, "c.js", "", []string{"c.js:1:1: want an object in braces"}},
		{Statsd, "c.js", "{port: 8125", []string{"c.js:1:12: want , or }"}},
		{Statsd, "c.js", "{\n port: 8125,\n graphite: { globalSuffix: require('os').hostname() }\n}", []string{`c.js:3:28: "require('os').hostname()" is an expression, which is not evaluated: write its value`}},
		{Statsd, "c.js", "{port: +process.env.PORT}", []string{`c.js:1:8: "+process.env.PORT" is an expression`}},
		{Statsd, "c.js", `{a: "x" + "y"}`, []string{`c.js:1:5: "\"x\" + \"y\"" is an expression`}},
		{Statsd, "c.js", "{a: `x${y}`}", []string{"c.js:1:5: \"`x${y\" is an expression"}},
		{Statsd, "c.js", `{a: "\12"}`, []string{"c.js:1:6: an octal escape"}},
		{Statsd, "c.js", "{a: 'x\n'}", []string{"c.js:1:5: the string does not end"}},
		{Statsd, "c.js", `{a: "x\`, []string{"c.js:1:7: the string does not end"}},
		{Statsd, "c.js", "{a: 010}", []string{`c.js:1:5: "010" is an expression`}},
		{Statsd, "c.js", "{a: 1} x", []string{"c.js:1:8: want nothing behind the object"}},
		{Statsd, "c.js", "({a: 1}); x", []string{"c.js:1:11: want nothing behind the object"}},
		{Statsd, "c.js", "{/* a: 1}", []string{"c.js:1:2: the comment does not end"}},
		{Statsd, "c.js", "{a: 1, a: 2}", []string{"c.js:1:8: a is set twice"}},
		{Statsd, "c.js", "{repeater: [{a: 1, 'a': 2}]}", []string{"c.js:1:20: a is set twice"}},
		{Telegraf, "t.conf", "[[inputs.statsd]]\n[[outputs.file]]\nfiles = ['x', '/a/', '/b']\n", []string{`t.conf:3:10: outputs.file[0].files[0]: "x" is not stdout or an absolute path`, `t.conf:3:15: outputs.file[0].files[1]: "/a/" is not`}},
		{Statsd, "c.js", "{a: [1 2]}", []string{`c.js:1:6: "1 2]" is an expression`}},
		{Statsd, "c.js", "{flushInterval: 'soon', port: 0, address: 'host', backends: []}", []string{
			`c.js:1:17: flushInterval: "soon" is not a duration, such as 10s`, `c.js:1:43: address: "host" is not an IP address to listen on`, `c.js:1:31: port: "0" is not a port in [1, 65535]`,
		}},
		{Statsd, "c.js", "{repeater: [{port: 1}], backends: ['repeater']}", []string{"c.js:1:13: repeater[0]: has no host"}},
		{Statsd, "c.js", "{nodes: []}", []string{"c.js:1:9: nodes: there are none"}},
		{Statsd, "c.js", "{servers: [5]}", []string{"c.js:1:12: servers[0]: "}},
		{Telegraf, "t.conf", "[[inputs.statsd]\n", []string{"t.conf:1:16: not valid TOML: "}},
		{Telegraf, "t.conf", "[agent]\ninterval = \"1s\"\n[agent]\n", []string{"t.conf:3:2: not valid TOML: agent is defined twice"}},
		{Telegraf, "t.conf", "a = 1\na = 2\n", []string{"t.conf:2:1: not valid TOML: a is defined twice"}},
		{Telegraf, "t.conf", "a = {b = 1}\n[a.c]\n", []string{"t.conf:2:2: not valid TOML: a cannot be extended"}},
		{Telegraf, "t.conf", "a = 1\n[a.b]\n", []string{"t.conf:2:2: not valid TOML: a is not a table"}},
		{Telegraf, "t.conf", "[[inputs.statsd]]\nprotocol = 'sctp'\n", []string{`t.conf:2:12: inputs.statsd[0].protocol: "sctp" is not udp, udp4, udp6 or tcp`}},
		{Telegraf, "t.conf", "[agent]\n", []string{"t.conf:1:2: inputs.statsd: there is none"}},
		{Telegraf, "t.conf", "[[inputs.statsd]]\n[[outputs.http]]\ndata_format='prometheusremotewrite'\nurl='ftp://x'\n", []string{"t.conf:4:5: outputs.http[0].url: not http://host or https://host without user information"}},
		{Gostatsd, "g.toml", "backends = 'statsdaemon'\n", []string{"g.toml:1:1: statsdaemon.address: is required"}},
		{Gostatsd, "g.toml", "backends = 'statsdaemon'\n[statsdaemon]\naddress = ' '\n", []string{"g.toml:3:1: statsdaemon.address: is required"}},
		{Gostatsd, "g.toml", "metrics-addr = 'x'\nFlush-Interval = 1\nflush-interval = 2\n", []string{"g.toml:3:1: flush-interval: is set twice, with different letter cases", `g.toml:1:16: metrics-addr: "x" is not host:port`}},
		{Gostatsd, "g.yaml", "backends: [\n", []string{"g.yaml:2:1: "}},
		{Gostatsd, "g.yaml", "- a\n", []string{"g.yaml:1:1: "}},
		{Brubeck, "b.json", "{\"samplers\": [{\"type\": \"statsd\", \"port\": \"x\"}]\n", []string{"b.json:"}},
		{Brubeck, "b.json", `{"samplers": [{"type": "statsd", "port": "x"}]}`, []string{`b.json:1:42: samplers[0].port: "x" is not a port in [1, 65535]`}},
		{Brubeck, "b.json", strings.Repeat(" ", MaxBytes+1), []string{"b.json: 1048577 bytes are more than the limit of 1048576"}},
		{"carbon", "c", "", []string{`convert: unknown program "carbon"`}},
	} {
		r, err := Convert(tt.from, tt.file, []byte(tt.text), nil)
		if err == nil {
			t.Errorf("%s: no error, but\n%s", tt.text, r.YAML)
			continue
		}
		for _, want := range tt.want {
			if !strings.Contains("\n"+err.Error(), "\n"+want) {
				t.Errorf("%.80q: %v, want %q", tt.text, err, want)
			}
		}
	}
}

// TestEscapesThatEnd has escapes that the end of the text cuts off.
func TestEscapesThatEnd(t *testing.T) {
	for _, text := range []string{`{a:"\u12`, `{a:"\x1`, `{a:"\u{12`, `{a:"\u{}"}`, `{a:"\u{1234567}"}`} {
		if _, errs := parseLiteral([]byte(text)); len(errs) != 1 || !strings.Contains(errs[0].Error(), "an escape without a hexadecimal number") {
			t.Errorf("%s: %v", text, errs)
		}
	}
}

// TestTelegrafAddresses: without a host, all addresses of the family are meant.
func TestTelegrafAddresses(t *testing.T) {
	for text, want := range map[string]string{
		"protocol = 'udp6'\nservice_address = ':8125'": "udp://[::]:8125", "protocol = 'udp6'\nservice_address = '[::1]:8125'": "udp://[::1]:8125",
		"protocol = 'udp4'\nservice_address = ':8125'": "udp://0.0.0.0:8125", "protocol = 'tcp6'": "tcp://[::]:8125", "protocol = 'udp'": "udp://0.0.0.0:8125",
	} {
		r, err := Convert(Telegraf, "t.conf", []byte("[[inputs.statsd]]\n"+text+"\n"), nil)
		if err != nil || !strings.Contains(string(r.YAML), want) {
			t.Errorf("%q lacks %s: %v\n%s", text, want, err, r.YAML)
		}
	}
}

// TestLiteral has the values of JavaScript.
func TestLiteral(t *testing.T) {
	for text, want := range map[string]string{
		`0x1F`: "31", `1e3`: "1000", `.5`: "0.5", `-2`: "-2", `0`: "0", `1_000`: "1000", `0b101`: "5", `0o17`: "15", `5.`: "5",
		`"a\x41\u00e9\u{1F600}\ud83d\ude00\n\'"`: "aAé😀😀\n'", `'a\
b'`: "ab", "`a\nb`": "a\nb", `undefined`: "null", `true`: "true", `"\ud83d"`: "\uFFFD", `"\u{a}\u{10ffff}"`: "\n\U0010FFFF", `'\é'`: "é",
		`"\n\t\r\b\f\v\\\""`: "\n\t\r\b\f\v\\\"", `+2`: "2", `1e+5`: "100000", `2E-1`: "0.2", `0xe1`: "225", `-0.5`: "-0.5", `/**/1/**/`: "1", `//` + "\n1": "1",
		`"a//b"`: "a//b", `"$"`: "$", "`$`": "$", "`\n`": "\n", `"it's"`: "it's", `null`: "null", `false`: "false",
	} {
		for _, form := range []string{"{a:%s}", "module.exports = { 'a' : %s , } ;", "exports={a:%s}", "// x\n({a:%s})"} {
			root, errs := parseLiteral(fmt.Appendf(nil, form, text))
			if errs != nil || len(root.Content) != 2 || root.Content[1].Value != want {
				t.Errorf(form+": %v, want %q", text, errs, want)
			}
		}
	}
}

// TestWords compares the characters of a name with a regular expression.
func TestWords(t *testing.T) {
	first, later := regexp.MustCompile(`^[A-Za-z_$]$`), regexp.MustCompile(`^[A-Za-z0-9_$]$`)
	for i := range 128 {
		c := string(rune(i))
		for before, valid := range map[string]*regexp.Regexp{"": first, "a": later} {
			r := literalReader{text: before + c}
			if got := r.word() == before+c; got != valid.MatchString(c) {
				t.Errorf("word %q: %t", before+c, got)
			}
		}
	}
}

// TestTelegrafVariables: variables are replaced in settings that are converted, with a
// note; others may be unset.
func TestTelegrafVariables(t *testing.T) {
	environment := map[string]string{"PORT": "8126", "DC": "eu: #1", "EMPTY": "", "NUMBER": "2_0"}
	lookup := func(name string) (string, bool) {
		text, ok := environment[name]
		return text, ok
	}
	const text = `[global_tags]
dc = "${DC}"
rack = "${RACK}"
zone = "$EMPTY-$ZONE $1"
price = "5$$"
must = "${RACK:?no rack}${DC:?no dc}"
secret = "@{vault:pw}"
[[inputs.statsd]]
service_address = "${HOST:-127.0.0.1}:${PORT}"
max_ttl = "${NUMBER}s"
[[outputs.graphite]]
servers = ["${EMPTY:-carbon}${EMPTY-x}:2003"]
graphite_tag_support = true
[[outputs.influxdb]]
token = "${TOKEN}"
`
	r, err := Convert(Telegraf, "t.conf", []byte(text), lookup)
	if err != nil {
		t.Fatal(err)
	}
	var notes strings.Builder
	for _, n := range r.Notes {
		fmt.Fprintln(&notes, n)
	}
	for _, want := range []string{"udp://127.0.0.1:8126", `address: "carbon:2003"`, `dc: "eu: #1"`, `counter: 20s`, `rack: "${RACK}"`, `zone: "-$ZONE $1"`, `price: "5$"`, `must: "${RACK:?no rack}eu: #1"`, `secret: "@{vault:pw}"`} {
		if !strings.Contains(string(r.YAML), want) {
			t.Errorf("lacks %s:\n%s", want, r.YAML)
		}
	}
	const now = " is not read later: this is its value now\n"
	for _, want := range []string{
		"t.conf:2:1: global_tags.dc: the environment variable DC" + now, "t.conf:3:1: global_tags.rack: the environment variable RACK is not set: write its value\n",
		"t.conf:9:1: inputs.statsd[0].service_address: the environment variable HOST is not read later: this is its default\n", "service_address: the environment variable PORT" + now,
		"t.conf:4:1: global_tags.zone: the environment variable ZONE is not set: write its value\n", "global_tags.must: the environment variable RACK is not set: write its value\n",
		"global_tags.secret: @{vault:pw} is not read: write its value\n",
		"max_ttl: the environment variable NUMBER" + now, "servers[0]: the environment variable EMPTY is not read later: this is its default\n",
	} {
		if strings.Count(notes.String(), want) != 1 {
			t.Errorf("want %q once in\n%s", want, notes.String())
		}
	}
	if strings.Contains(notes.String(), "TOKEN") {
		t.Errorf("a variable of a setting that is not converted:\n%s", notes.String())
	}
	for text, want := range map[string]string{
		"service_address = '${ADDRESS}'":                                          `t.conf:2:19: inputs.statsd[0].service_address: "${ADDRESS}" is not host:port: the environment variable ADDRESS is not set; set it for this conversion`,
		"[[outputs.http]]\ndata_format = 'prometheusremotewrite'\nurl = '${URL}'": "t.conf:4:7: outputs.http[0].url: not http://host or https://host without user information: the environment variable URL is not set; set it for this conversion",
	} {
		if r, err := Convert(Telegraf, "t.conf", []byte("[[inputs.statsd]]\n"+text+"\n"), lookup); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s\n%v", text, err, want, r)
		}
	}
	// Other programs have no variables in their texts.
	if r, err := Convert(Gostatsd, "g.toml", []byte("namespace = '${PORT}'\n"), lookup); err != nil || strings.Contains(string(r.YAML), "8126") {
		t.Errorf("%v\n%s", err, r.YAML)
	}
}
