package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // registers the format
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm" // registers the format
)

// packages writes the Debian and the RPM package of a target.
func (r *release) packages(t target, all []file) error {
	dir, err := os.MkdirTemp("", "statsd-admin-package-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for i, f := range all {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), f.data, 0o600); err != nil {
			return err
		}
	}
	script := func(name string) string { return filepath.Join(r.root, "deploy", "packages", "scripts", name) }
	for _, format := range []string{"deb", "rpm"} {
		packager, err := nfpm.Get(format)
		if err != nil {
			return err
		}
		var contents files.Contents
		for i, f := range all {
			if format == "rpm" { // where zsh looks on systems with RPM
				f.path = strings.Replace(f.path, "/zsh/vendor-completions/", "/zsh/site-functions/", 1)
			}
			contents = append(contents, &files.Content{
				Source: filepath.Join(dir, fmt.Sprint(i)), Destination: f.path, Type: f.kind,
				FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: os.FileMode(f.mode), MTime: r.time},
			})
		}
		info := nfpm.WithDefaults(&nfpm.Info{
			Name: "statsd-admin", Arch: t.arch, Platform: t.os, Version: packageVersion(r.version), VersionSchema: "none", Release: "1",
			Section: "net", Priority: "optional", Maintainer: "The statsd-admin authors",
			Description: "StatsD server with an administration interface\n" +
				"Counts what StatsD clients send, shows it to Prometheus, terminals and browsers,\nand speaks the administration interface of modern proxies.",
			Homepage: "https://github.com/statsd-admin/statsd-admin", License: "Apache-2.0", MTime: r.time,
			Overridables: nfpm.Overridables{
				Contents: contents, Umask: 0o022,
				Scripts: nfpm.Scripts{PostInstall: script("postinstall"), PreRemove: script("preremove"), PostRemove: script("postremove")},
				RPM:     nfpm.RPM{Group: "System Environment/Daemons", Summary: "StatsD server with an administration interface", BuildHost: "localhost"},
			},
		})
		if err := nfpm.PrepareForPackager(info, format); err != nil {
			return err
		}
		out, err := os.Create(filepath.Join(r.out, packager.ConventionalFileName(info)))
		if err != nil {
			return err
		}
		if err := packager.Package(info, out); err != nil {
			return err
		}
		if err := out.Close(); err != nil {
			return err
		}
	}
	return nil
}

// packageVersion returns a version as packages spell it. A description of git,
// such as v0.1.0-3-gabcdef, is later than the version that it begins with; a bare
// revision is earlier than all versions.
func packageVersion(v string) string {
	v = strings.ReplaceAll(v, "-", "+")
	if rest, ok := strings.CutPrefix(v, "v"); ok {
		return rest
	}
	return "0+" + v
}
