package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestReadmeShowsTheExample keeps the code in README.md the same as the body of
// Example, apart from the port, and the printed lines equal to its output.
func TestReadmeShowsTheExample(t *testing.T) {
	_, rest, _ := strings.Cut(read(t, "example_test.go"), "func Example() {\n")
	code, output, ok := strings.Cut(rest, "\t// Output:\n")
	if !ok {
		t.Fatal("example_test.go has no Output comment")
	}
	code = regexp.MustCompile(`(?m)^\t`).ReplaceAllString(code, "")
	code = strings.ReplaceAll(code, "127.0.0.1:0", "127.0.0.1:9901")
	output = strings.ReplaceAll(strings.TrimSuffix(output, "}\n"), "\t// ", "    ")
	setup, _, _ := strings.Cut(code, "total.Inc()")
	if n := len(regexp.MustCompile(`(?m)^.+$`).FindAllString(setup, -1)); n > 10 || strings.Contains(code, "panic(") {
		t.Errorf("the example has %d lines of setup, want at most 10, and no panic", n)
	}
	readme := read(t, "../../README.md")
	for _, want := range []string{"```go\n" + code + "```", "prints\n\n" + output} {
		if !strings.Contains(readme, want) {
			t.Errorf("README.md does not show:\n%s", want)
		}
	}
}
