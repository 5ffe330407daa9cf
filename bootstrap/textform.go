package bootstrap

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	"go.yaml.in/yaml/v4"
	"google.golang.org/protobuf/encoding/prototext"

	"github.com/statsd-admin/statsd-admin/internal/redact"
)

// parseText parses a bootstrap message in text form. Errors that are found
// later, in values, have no position.
func parseText(name string, data []byte) (*yaml.Node, []*Error) {
	m := new(bootstrapv3.Bootstrap)
	if err := prototext.Unmarshal(data, m); err != nil {
		return nil, []*Error{textMistake(name, err)}
	}
	return tree(name, m)
}

// textMistake says where a text in text form is wrong, and how, without the words
// that the package which reads it quotes: they may be a part of a secret.
func textMistake(name string, err error) *Error {
	e := &Error{Position: Position{File: name}, Message: "not in text form"}
	match := regexp.MustCompile(`(?s)\(line (\d+):(\d+)\): (.*)`).FindStringSubmatch(plain(err))
	if match == nil {
		return e
	}
	e.Position.Line, _ = strconv.Atoi(match[1])
	e.Position.Column, _ = strconv.Atoi(match[2])
	message, _, _ := strings.Cut(match[3], ": ")
	e.Message = regexp.MustCompile(`(?s)"(?:[^"\\]|\\.)*"?|'.*|\[.*`).ReplaceAllString(message, redact.Mark)
	return e
}

// parseTextLeniently is parseText for a file that may have fields that are not
// known. The package that reads the text form skips them without a word, or stops
// at the first; so each field at which it stops is blanked, and
// stands in the tree as fields of the top that are not known. More than 100 of
// them are an error.
func parseTextLeniently(name string, data []byte) (*yaml.Node, []*Error) {
	data = bytes.Clone(data)
	var unknown []*yaml.Node
	for {
		err := prototext.Unmarshal(data, new(bootstrapv3.Bootstrap))
		at, line, column := unknownIn(data, err)
		if at < 0 {
			break
		}
		if len(unknown) == 2*maxErrors {
			return nil, []*Error{{Position: Position{File: name, Line: line, Column: column}, Message: "more than " + strconv.Itoa(maxErrors) + " fields are not known"}}
		}
		value, end := fieldEnds(data, at)
		unknown = append(unknown, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: "field " + string(data[at:value]), Line: line, Column: column},
			&yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null"})
		for i := at; i < end; i++ {
			if data[i] != '\n' {
				data[i] = ' '
			}
		}
	}
	root, errs := parseText(name, data)
	if root != nil {
		root.Content = append(root.Content, unknown...)
	}
	return root, errs
}

// unknownIn returns where the field stands that err calls unknown; at is negative
// if it says something else.
func unknownIn(data []byte, err error) (at, line, column int) {
	if err == nil {
		return -1, 0, 0
	}
	match := regexp.MustCompile(`\(line (\d+):(\d+)\): (?:unknown field: |invalid field name .* in google\.protobuf\.Any message)`).FindStringSubmatch(plain(err))
	if match == nil {
		return -1, 0, 0
	}
	line, _ = strconv.Atoi(match[1])
	column, _ = strconv.Atoi(match[2])
	for range line - 1 {
		at += bytes.IndexByte(data[at:], '\n') + 1
	}
	for range column - 1 {
		_, size := utf8.DecodeRune(data[at:])
		at += size
	}
	return at, line, column
}

// fieldEnds returns where the name ends of the field that begins at a place of
// text in text form, and where the field ends. What follows the field need not be
// right; an end is always beyond the place.
func fieldEnds(data []byte, at int) (name, end int) {
	name = at + 1
	if data[at] == '[' {
		for name < len(data) && data[name-1] != ']' {
			name++
		}
	} else {
		name += wordIn(data[name:])
	}
	end = name + blankIn(data[name:])
	if end < len(data) && data[end] == ':' {
		end++
		end += blankIn(data[end:])
	}
	end += valueIn(data[end:])
	if i := end + blankIn(data[end:]); i < len(data) && (data[i] == ',' || data[i] == ';') {
		end = i + 1
	}
	return name, end
}

// valueIn returns the length of the value at the start of data: strings in a row, a
// number or name, or what stands in brackets.
func valueIn(data []byte) int {
	if len(data) == 0 || !bytes.ContainsRune([]byte("{[<\"'"), rune(data[0])) {
		i := 0
		if len(data) > 0 && data[0] == '-' {
			i = 1 + blankIn(data[1:])
		}
		return i + wordIn(data[i:])
	}
	depth := 0
	for i := 0; i < len(data); {
		switch data[i] {
		case '"', '\'':
			i += stringIn(data[i:])
			if next := i + blankIn(data[i:]); depth > 0 || next < len(data) && (data[next] == '"' || data[next] == '\'') {
				i = next
				continue
			}
		case '#':
			i += blankIn(data[i:])
		case '{', '[', '<':
			depth++
			i++
		case '}', ']', '>':
			depth--
			i++
		default:
			i++
		}
		if depth <= 0 {
			return i
		}
	}
	return len(data)
}

// wordIn returns the length of the name or number at the start of data.
func wordIn(data []byte) int {
	for i, c := range data {
		if c != '_' && c != '.' && c != '+' && c != '-' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
			return i
		}
	}
	return len(data)
}

// blankIn returns the length of the white space and comments at the start of data.
func blankIn(data []byte) int {
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case ' ', '\n', '\r', '\t', '\v', '\f':
		case '#':
			line := bytes.IndexByte(data[i:], '\n')
			if line < 0 {
				return len(data)
			}
			i += line
		default:
			return i
		}
	}
	return len(data)
}

// stringIn returns the length of the string at the start of data, quotes included.
func stringIn(data []byte) int {
	for i := 1; i < len(data); i++ {
		switch data[i] {
		case '\\':
			i++
		case data[0]:
			return i + 1
		}
	}
	return len(data)
}
