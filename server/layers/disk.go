package layers

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/statsd-admin/statsd-admin/internal/boundedfile"
)

// Limits for a tree on disk.
const (
	maxWalkDepth = 16
	maxFileBytes = 1 << 20
	maxFiles     = 100_000
)

// forbiddenRoots must not contain values, directly or through a link.
var forbiddenRoots = []string{"/dev", "/proc", "/sys"}

// readTree returns the values below root. Keys are directory names and file name,
// joined by dots. If root is not a directory, exists is false without an error.
func readTree(root string) (cells map[string]cell, exists bool, err error) {
	info, err := os.Stat(root)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	cells = make(map[string]cell)
	return cells, true, walk(cells, root, "", 1)
}

// walk reads one directory; prefix is the key so far with a trailing dot.
func walk(cells map[string]cell, dir, prefix string, depth int) error {
	if depth > maxWalkDepth {
		return errTooDeep()
	}
	var entries []os.DirEntry
	err := checkPath(dir)
	if err == nil {
		entries, err = os.ReadDir(dir)
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		path, name := filepath.Join(dir, entry.Name()), entry.Name()
		info, err := os.Stat(path) // follows links: trees are often made of them
		if err != nil {
			continue // gone meanwhile, or a link to nowhere
		}
		switch {
		case !info.IsDir() && !info.Mode().IsRegular(): // skipped
		case name == "numerator" || name == "denominator":
			return fmt.Errorf("%q: %q is a reserved word", path, name)
		case info.IsDir():
			if err := walk(cells, path, prefix+name+".", depth+1); err != nil {
				return err
			}
		default:
			text, err := readValue(path)
			if err != nil {
				return err
			}
			if cells[prefix+name] = (cell{text, parseText(text)}); len(cells) > maxFiles {
				return fmt.Errorf("more than %d files", maxFiles)
			}
		}
	}
	return nil
}

// checkPath rejects the forbidden roots, also behind links.
func checkPath(path string) error {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	for _, root := range forbiddenRoots {
		if real == root || strings.HasPrefix(real, root+"/") {
			return errInvalidPath(path)
		}
	}
	return nil
}

func readValue(path string) (string, error) {
	err := checkPath(path)
	if err != nil {
		return "", err
	}
	data, err := boundedfile.Read(path, maxFileBytes)
	return fileText(data), err
}

// fileText returns the content of a file without comment lines (#) and trailing white
// space. Inner line breaks stay.
func fileText(data []byte) string {
	var b strings.Builder
	for line := range strings.SplitSeq(string(data), "\n") {
		if !strings.HasPrefix(line, "#") {
			b.WriteString(line)
			b.WriteByte('\n')
		}
	}
	return strings.TrimRight(b.String(), " \t\r\n\v\f")
}
