package dump

import "testing"

func TestErrors(t *testing.T) {
	for want, err := range map[string]*Error{
		"a not found in config dump":                                               NotFound("a"),
		"a is not a repeated field. Use ?mask=a to get only this field":            NotRepeated("a"),
		"FieldMask a,b could not be successfully applied to any configs.":          Unfit("a,b"),
		"FieldMask paths: \"a\"\npaths: \"\\n\"\n could not be successfully used.": UnfitPaths([]string{"a", "\n"}),
	} {
		status := 400
		if want == NotFound("a").Text {
			status = 404
		}
		if err.Error() != "dump: "+want || err.Text != want || err.Status != status {
			t.Errorf("%d %q, want %d %q", err.Status, err.Error(), status, want)
		}
	}
}

func TestQueryWithoutMatchHasAllNames(t *testing.T) {
	if ok, err := new(Query).Matches("a"); !ok || err != nil {
		t.Errorf("%t, %v", ok, err)
	}
	q := Query{Match: func(name string) (bool, error) { return name == "a", NotFound(name) }}
	for _, name := range []string{"a", "b"} {
		if ok, err := q.Matches(name); ok != (name == "a") || err == nil || err.Error() != "dump: "+name+" not found in config dump" {
			t.Errorf("%s: %t, %v", name, ok, err)
		}
	}
}
