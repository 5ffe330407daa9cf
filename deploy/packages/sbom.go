package main

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
)

// module is a module that is linked into the program.
type module struct{ path, version, sum, dir string }

// modules returns the modules that a binary was built from, according to itself.
func (r *release) modules(binary string) ([]module, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	var all []module
	for _, d := range info.Deps {
		if d.Replace != nil {
			return nil, fmt.Errorf("module %s is replaced", d.Path)
		}
		all = append(all, module{path: d.Path, version: d.Version, sum: d.Sum})
	}
	paths := []string{"list", "-m", "-f", "{{.Path}} {{.Dir}}"}
	for _, m := range all {
		paths = append(paths, m.path)
	}
	text, err := r.output("go", paths...)
	if err != nil {
		return nil, err
	}
	dirs := make(map[string]string)
	for line := range strings.Lines(text) {
		path, dir, _ := strings.Cut(strings.TrimSpace(line), " ")
		dirs[path] = dir
	}
	for i := range all {
		if all[i].dir = dirs[all[i].path]; all[i].dir == "" {
			return nil, fmt.Errorf("module %s is not in the module cache", all[i].path)
		}
	}
	goroot, err := r.output("go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	return append(all, module{path: "std", version: strings.TrimPrefix(info.GoVersion, "go"), dir: goroot}), nil
}

// licenseFile matches the names of files with terms that have to go with the program.
var licenseFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([.-].*)?$`)

// licenseTexts returns the licenses and notices of modules. A module without any is an error.
func licenseTexts(modules []module) ([]byte, error) {
	var b bytes.Buffer
	for _, m := range modules {
		entries, err := os.ReadDir(m.dir)
		if err != nil {
			return nil, err
		}
		found := false
		for _, e := range entries {
			if e.IsDir() || !licenseFile.MatchString(e.Name()) {
				continue
			}
			text, err := os.ReadFile(filepath.Join(m.dir, e.Name()))
			if err != nil {
				return nil, err
			}
			found = true
			fmt.Fprintf(&b, "==== %s %s: %s\n\n%s\n\n", m.path, m.version, e.Name(), bytes.TrimSpace(text))
		}
		if !found && m.path != "std" {
			return nil, fmt.Errorf("module %s has no license file", m.path)
		}
	}
	return b.Bytes(), nil
}

// licenseMarks are sentences that only one license has, in this order.
var licenseMarks = []struct{ id, mark string }{
	{"Apache-2.0", "Apache License"},
	{"MPL-2.0", "Mozilla Public License"},
	{"ISC", "Permission to use, copy, modify, and/or distribute this software"},
	{"ISC", "Permission to use, copy, modify, and distribute this software"},
	{"MIT", "Permission is hereby granted, free of charge"},
	{"BSD-3-Clause", "Neither the name of"},
	{"BSD-2-Clause", "Redistribution and use in source and binary forms"},
}

// license returns the SPDX identifier of the license of a module, "" if it is none of
// those above.
func (m module) license() (string, error) {
	text, err := licenseTexts([]module{m})
	if err != nil {
		return "", err
	}
	words := strings.Join(strings.Fields(string(text)), " ")
	for _, l := range licenseMarks {
		if strings.Contains(words, l.mark) {
			return l.id, nil
		}
	}
	return "", nil
}

// billOfMaterials writes the bill of materials of a target, in the JSON form of CycloneDX.
func (r *release) billOfMaterials(t target, modules []module) error {
	bom := cyclonedx.NewBOM()
	main := cyclonedx.Component{
		BOMRef: "statsd-admin", Type: cyclonedx.ComponentTypeApplication, Name: "statsd-admin", Version: r.version,
		PackageURL: "pkg:golang/github.com/statsd-admin/statsd-admin@" + r.version,
	}
	bom.Metadata = &cyclonedx.Metadata{Timestamp: r.time.Format(time.RFC3339), Component: &main}
	var components []cyclonedx.Component
	refs := make([]string, 0, len(modules))
	for _, m := range modules {
		id := ""
		if m.path != "std" {
			var err error
			if id, err = m.license(); err != nil {
				return err
			}
			if id == "" {
				return fmt.Errorf("module %s has an unknown license", m.path)
			}
		} else {
			id = "BSD-3-Clause"
		}
		ref := "pkg:golang/" + m.path + "@" + m.version
		refs = append(refs, ref)
		components = append(components, cyclonedx.Component{
			BOMRef: ref, Type: cyclonedx.ComponentTypeLibrary, Name: m.path, Version: m.version, PackageURL: ref,
			Licenses: &cyclonedx.Licenses{{License: &cyclonedx.License{ID: id}}},
		})
	}
	slices.Sort(refs)
	bom.Components = &components
	bom.Dependencies = &[]cyclonedx.Dependency{{Ref: main.BOMRef, Dependencies: &refs}}
	var b bytes.Buffer
	if err := cyclonedx.NewBOMEncoder(&b, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(bom); err != nil {
		return err
	}
	if !json.Valid(b.Bytes()) {
		return fmt.Errorf("the bill of materials of %v is not JSON", t)
	}
	name := fmt.Sprintf("statsd-admin_%s_%v.cdx.json", strings.TrimPrefix(r.version, "v"), t)
	return os.WriteFile(filepath.Join(r.out, name), b.Bytes(), 0o644)
}
