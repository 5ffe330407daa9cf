package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // registers the format
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm" // registers the format
)

// maintainer is the contact of the packages.
const maintainer = "The statsd-admin authors <statsd-admin@users.noreply.github.com>"

// packages writes the Debian and the RPM package of a target.
func (r *release) packages(t target, all []file) error {
	debian, err := r.debianFiles(all)
	if err != nil {
		return err
	}
	if err := r.pack(t, "deb", debian); err != nil {
		return err
	}
	return r.pack(t, "rpm", rpmFiles(all))
}

// rpmFiles returns the files as an RPM package has them.
func rpmFiles(all []file) []file {
	list := slices.Clone(all)
	for i := range list { // where zsh looks on systems with RPM
		list[i].path = strings.Replace(list[i].path, "/zsh/vendor-completions/", "/zsh/site-functions/", 1)
	}
	return list
}

// debianFiles returns the files as a Debian package has them.
func (r *release) debianFiles(all []file) ([]file, error) {
	const doc = "/usr/share/doc/statsd-admin/"
	var list []file
	for _, f := range all {
		switch f.name {
		case "LICENSE": // in Debian's /usr/share/common-licenses
			continue
		case "CHANGELOG.md":
			data, err := compressed(f.data)
			if err != nil {
				return nil, err
			}
			f = file{path: doc + "changelog.gz", mode: f.mode, data: data}
		}
		list = append(list, f)
	}
	entry := fmt.Sprintf("statsd-admin (%s-1) unstable; urgency=medium\n\n  * See changelog.gz.\n\n -- %s  %s\n", packageVersion(r.version), maintainer, r.time.Format(time.RFC1123Z))
	changelog, err := compressed([]byte(entry))
	if err != nil {
		return nil, err
	}
	return append(list,
		file{path: doc + "changelog.Debian.gz", mode: 0o644, data: changelog},
		file{path: doc + "copyright", mode: 0o644, data: fmt.Appendf(nil, debianCopyright, r.time.Year())},
		file{path: "/usr/share/lintian/overrides/statsd-admin", mode: 0o644, data: []byte(lintianOverrides)},
	), nil
}

const debianCopyright = `Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: statsd-admin
Source: https://github.com/statsd-admin/statsd-admin
Comment: The licenses of the modules in the program are in THIRD_PARTY_LICENSES.

Files: *
Copyright: %d The statsd-admin authors
License: Apache-2.0
 On Debian systems, /usr/share/common-licenses/Apache-2.0 has the text.
`

const lintianOverrides = `# The same program as in the archive and the image.
statsd-admin: statically-linked-binary [usr/bin/statsd-admin]
# The scripts also run as those of the RPM package, without debhelper's programs.
statsd-admin: maintainer-script-calls-systemctl *
# The package is not in Debian.
statsd-admin: initial-upload-closes-no-bugs *
`

// pack writes a package.
func (r *release) pack(t target, format string, list []file) error {
	dir, err := os.MkdirTemp("", "statsd-admin-package-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var contents files.Contents
	for i, f := range list {
		source := filepath.Join(dir, fmt.Sprint(i))
		if err := os.WriteFile(source, f.data, 0o600); err != nil {
			return err
		}
		contents = append(contents, &files.Content{
			Source: source, Destination: f.path, Type: f.kind,
			FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: os.FileMode(f.mode), MTime: r.time},
		})
	}
	packager, err := nfpm.Get(format)
	if err != nil {
		return err
	}
	script := func(name string) string { return filepath.Join(r.root, "deploy", "packages", "scripts", name) }
	info := nfpm.WithDefaults(&nfpm.Info{
		Name: "statsd-admin", Arch: t.arch, Platform: t.os, Version: packageVersion(r.version), VersionSchema: "none", Release: "1",
		Section: "net", Priority: "optional", Maintainer: maintainer,
		Description: "StatsD server with an administration interface\n" +
			"Counts what StatsD clients send, shows it to Prometheus, terminals and\nbrowsers, and speaks the administration interface of modern proxies.",
		Homepage: "https://github.com/statsd-admin/statsd-admin", MTime: r.time,
		Overridables: nfpm.Overridables{
			Contents: contents, Umask: 0o022,
			Scripts: nfpm.Scripts{PostInstall: script("postinstall"), PreRemove: script("preremove"), PostRemove: script("postremove")},
			RPM:     nfpm.RPM{Group: "System Environment/Daemons", Summary: "StatsD server with an administration interface", BuildHost: "localhost"},
		},
	})
	if format == "rpm" { // Debian's copyright file has it
		info.License = "Apache-2.0"
	}
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
	return out.Close()
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
