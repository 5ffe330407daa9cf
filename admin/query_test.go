package admin

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var querySeeds = []struct {
	in   string
	want Query
}{
	{"", nil},
	{"a", Query{{"a", ""}}},
	{"a=", Query{{"a", ""}}},
	{"a=b", Query{{"a", "b"}}},
	{"a=b=c", Query{{"a", "b=c"}}},
	{"a=1&&b=2", Query{{"a", "1"}, {"", ""}, {"b", "2"}}},
	{"a=1&", Query{{"a", "1"}}},
	{"&a=1", Query{{"", ""}, {"a", "1"}}},
	{"&", Query{{"", ""}}},
	{"&&", Query{{"", ""}, {"", ""}}},
	{"=", Query{{"", ""}}},
	{"=x", Query{{"", "x"}}},
	{"filter=a.+b", Query{{"filter", "a.+b"}}},
	{"a=%41%62&%63=d", Query{{"a", "Ab"}, {"c", "d"}}},
	{"a=%", Query{{"a", "%"}}},
	{"a=%4", Query{{"a", "%4"}}},
	{"a=%zz%4g%41", Query{{"a", "%zz%4gA"}}},
	{"a=%/1%1/%:1%@1%A@%G1%`1%g1%1%41", Query{{"a", "%/1%1/%:1%@1%A@%G1%`1%g1%1A"}}}, // next to the digits
	{"a=%2541", Query{{"a", "%41"}}},
	{"a=%26%3d%23", Query{{"a", "&=#"}}},
	{"a=%00%ff", Query{{"a", "\x00\xff"}}},
	{"a=1&a=2", Query{{"a", "1"}, {"a", "2"}}},
	{"a?b=c?d", Query{{"a?b", "c?d"}}},
	{"a#b=c", Query{{"a#b", "c"}}},
}

func TestParseQuery(t *testing.T) {
	for _, tt := range querySeeds {
		got, refused := parseQuery(tt.in, -1, -1)
		if refused != "" || !slices.Equal(got, tt.want) {
			t.Errorf("parseQuery(%q) = %q, %q, want %q", tt.in, got, refused, tt.want)
		}
	}
}

func TestFirstValueCounts(t *testing.T) {
	q, _ := parseQuery("a=&a=2&b&c=3&b=4", -1, -1)
	if got := q.Value("a"); got != "" {
		t.Errorf("a = %q, want the first value, which is empty", got)
	}
	if !q.Has("b") || q.Has("d") || q.Value("c") != "3" || q.Value("d") != "" {
		t.Errorf("%v: wrong presence or value", q)
	}
	if got, want := q.Keys(), []string{"a", "b", "c"}; !slices.Equal(got, want) {
		t.Errorf("keys %q, want %q", got, want)
	}
	if got, want := q.Distinct(), (Query{{"a", ""}, {"b", ""}, {"c", "3"}}); !slices.Equal(got, want) {
		t.Errorf("distinct %q, want %q", got, want)
	}
}

// TestManyParameters does not end in the time of a test if each parameter is compared
// with each: their number can be unlimited.
func TestManyParameters(t *testing.T) {
	const many = 400_000
	q := make(Query, many, many+1)
	for i := range q {
		q[i].Name = strconv.Itoa(i)
	}
	if got := q.Distinct(); !slices.Equal(got, q) {
		t.Errorf("%d distinct parameters of %d", len(got), len(q))
	}
	if got := append(q, q[0]).Distinct(); len(got) != many {
		t.Errorf("%d distinct parameters with one twice, of %d", len(got), len(q))
	}
}

func TestFormIsUsedWithoutQuery(t *testing.T) {
	form := Field{"Content-Type", formType}
	tests := []struct {
		name, target, body string
		header             []Field
		want               string
	}{
		{"form", "/echo", "a=%41+b%2Bc", []Field{form}, "a=A b+c"},
		{"plus-in-query", "/echo?a=b+c", "", nil, "a=b+c"},
		{"query-wins", "/echo?c=d", "a=b", []Field{form}, "c=d"},
		{"empty-query", "/echo?", "a=b", []Field{form}, "a=b"},
		{"other-type", "/echo", "a=b", []Field{{"Content-Type", "text/plain"}}, ""},
		{"type-with-charset", "/echo", "a=b", []Field{{"Content-Type", formType + "; charset=utf-8"}}, ""},
		{"no-type", "/echo", "a=b", nil, ""},
		{"newlines", "/echo", "k=numerator: 1\ndenominator: HUNDRED", []Field{form}, "k=numerator: 1\ndenominator: HUNDRED"},
	}
	s := newServer(t, Config{})
	s.Handle(Endpoint{Path: "/echo", Help: "show the parameters", Mutates: true, Serve: func(w *Response, r *Request) error {
		for _, p := range r.Query() {
			fmt.Fprintf(w, "%s=%s", p.Name, p.Value)
		}
		return nil
	}})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := string(s.Request("POST", tt.target, []byte(tt.body), tt.header...).Body); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

var escape = regexp.MustCompile(`%[0-9a-fA-F]{2}`)

// slowQuery is a reference implementation of parseQuery with a regular expression.
func slowQuery(text string) Query {
	decode := func(s string) string {
		return escape.ReplaceAllStringFunc(s, func(e string) string {
			n, _ := strconv.ParseUint(e[1:], 16, 8)
			return string([]byte{byte(n)})
		})
	}
	pieces := strings.Split(text, "&")
	if pieces[len(pieces)-1] == "" {
		pieces = pieces[:len(pieces)-1]
	}
	var q Query
	for _, piece := range pieces {
		parts := append(strings.SplitN(piece, "=", 2), "")
		q = append(q, Pair{decode(parts[0]), decode(parts[1])})
	}
	return q
}

// FuzzQuery compares the parser with the slow reference and checks the limits.
func FuzzQuery(f *testing.F) {
	for _, tt := range querySeeds {
		f.Add(tt.in)
	}
	f.Fuzz(func(t *testing.T, text string) {
		want := slowQuery(text)
		got, refused := parseQuery(text, -1, -1)
		if refused != "" || !slices.Equal(got, want) {
			t.Fatalf("parseQuery(%q) = %q, %q, want %q", text, got, refused, want)
		}
		longest := 0
		for _, p := range want {
			longest = max(longest, len(p.Value))
		}
		if _, refused := parseQuery(text, len(want), longest); refused != "" {
			t.Errorf("parseQuery(%q) refuses what is at the limits", text)
		}
		if len(want) > 0 {
			if _, refused := parseQuery(text, len(want)-1, -1); !strings.HasPrefix(refused, "more than ") {
				t.Errorf("parseQuery(%q) accepts %d parameters, one over the limit", text, len(want))
			}
		}
		if longest > 0 {
			if _, refused := parseQuery(text, -1, longest-1); !strings.HasPrefix(refused, "a parameter value over ") {
				t.Errorf("parseQuery(%q) accepts a value of %d bytes, one over the limit", text, longest)
			}
		}
	})
}
