package admin

import (
	"strings"
	"testing"
)

// TestMarkdownListsEndpoints expects a row for each endpoint, with its method, role,
// parameters and aliases.
func TestMarkdownListsEndpoints(t *testing.T) {
	s := newServer(t, Config{})
	nothing := func(*Response, *Request) error { return nil }
	for _, e := range []Endpoint{
		{Path: "/own", Aliases: []string{"/mine"}, Help: "own things", Serve: nothing, Params: []Param{{Name: "flag", Kind: ParamFlag}, {Name: "text", Kind: ParamText}, {Name: "choice", Kind: ParamChoice, Choices: []string{"", "a", "b"}}}},
		{Path: "/change", Help: "change things", Mutates: true, Role: RoleOperate, Serve: nothing}, {Path: "/secret", Hidden: true, Help: "hidden things", Serve: nothing},
	} {
		if err := s.Handle(e); err != nil {
			t.Fatal(err)
		}
	}
	text := string(s.Markdown())
	for want, n := range map[string]int{"| `/own`, `/mine` | GET | read | `flag`<br>`text`=…<br>`choice`=a\\|b | own things |\n": 1, "| `/change` | POST | operate |  | change things |\n": 1, "hidden things": 0} {
		if got := strings.Count(text, want); got != n {
			t.Errorf("%d of %q, want %d", got, want, n)
		}
	}
}
