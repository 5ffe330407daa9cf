package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestScriptlets runs the scripts of the packages with the arguments of dpkg and rpm,
// and programs that only say how they are called.
func TestScriptlets(t *testing.T) {
	const (
		users   = "systemd-sysusers /usr/lib/sysusers.d/statsd-admin.conf\nsystemd-tmpfiles --create /usr/lib/tmpfiles.d/statsd-admin.conf\n"
		reload  = "systemctl daemon-reload\n"
		active  = "systemctl is-active --quiet statsd-admin.service\n"
		upgrade = "systemctl kill --kill-whom=main --signal=SIGUSR2 statsd-admin.service\n"
		begin   = "systemctl enable statsd-admin.socket statsd-admin.service\nsystemctl start statsd-admin.socket statsd-admin.service\n"
		enabled = "systemctl is-enabled --quiet statsd-admin.socket\nsystemctl start statsd-admin.socket\n" +
			"systemctl is-enabled --quiet statsd-admin.service\nsystemctl start statsd-admin.service\n"
		disabled = "systemctl is-enabled --quiet statsd-admin.socket\nsystemctl is-enabled --quiet statsd-admin.service\n"
		stop     = "systemctl stop statsd-admin.socket statsd-admin.service\n"
		end      = "systemctl disable --now statsd-admin.socket statsd-admin.service\n"
		purge    = "rm -rf /etc/statsd-admin /var/log/statsd-admin\n" +
			"rm -f /etc/systemd/system/sockets.target.wants/statsd-admin.socket /etc/systemd/system/multi-user.target.wants/statsd-admin.service\ngetent passwd statsd-admin\nuserdel statsd-admin\n"
	)
	dir := t.TempDir()
	calls := filepath.Join(dir, "calls")
	for _, name := range []string{"systemctl", "systemd-sysusers", "systemd-tmpfiles", "rm", "getent", "userdel"} {
		stub := "#!/bin/sh\necho \"" + name + " $*\" >>" + calls + "\n[ \"$1\" != is-active ] || exit \"$RUNS\"\n[ \"$1\" != is-enabled ] || exit \"$ENABLED\"\n"
		if err := os.WriteFile(filepath.Join(dir, name), []byte(stub), 0o700); err != nil { // #nosec G306
			t.Fatal(err)
		}
	}
	booted := filepath.Join(dir, "booted")
	if err := os.Mkdir(booted, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		script, args string
		running      bool   // the service
		disabled     bool   // by an administrator
		want         string // with systemd
		without      string
	}{
		{"postinstall", "configure", false, false, users + reload + active + begin, users},
		{"postinstall", "1", false, false, users + reload + active + begin, users},
		{"postinstall", "configure 0.1.0-1", true, false, users + reload + active + upgrade, users},
		{"postinstall", "configure 0.1.0-1", false, false, users + reload + active + enabled, users},
		{"postinstall", "configure 0.1.0-1", false, true, users + reload + active + disabled, users},
		{"postinstall", "2", true, false, users + reload + active + upgrade, users},
		{"postinstall", "2", false, false, users + reload + active, users},
		{"preremove", "upgrade 0.1.1-1", true, false, "", ""},
		{"preremove", "1", true, false, "", ""},
		{"preremove", "remove", true, false, stop, ""},
		{"preremove", "0", true, false, end, ""},
		{"postremove", "upgrade 0.1.1-1", true, false, reload, ""},
		{"postremove", "1", true, false, reload, ""},
		{"postremove", "remove", false, false, reload, ""},
		{"postremove", "purge", false, false, reload + purge, purge},
		{"postremove", "0", false, false, reload + purge, purge},
	} {
		text, err := os.ReadFile("../../deploy/packages/scripts/" + tt.script)
		if err != nil {
			t.Fatal(err)
		}
		for systemd, want := range map[string]string{booted: tt.want, filepath.Join(dir, "none"): tt.without} {
			script := strings.ReplaceAll(string(text), "/run/systemd/system", systemd)
			status, enabled := "3", "0"
			if tt.running {
				status = "0"
			}
			if tt.disabled {
				enabled = "1"
			}
			if err := os.WriteFile(calls, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command("/bin/sh", append([]string{"-c", script, tt.script}, strings.Fields(tt.args)...)...)
			cmd.Env = []string{"PATH=" + dir, "RUNS=" + status, "ENABLED=" + enabled}
			out, err := cmd.CombinedOutput()
			got, readErr := os.ReadFile(calls)
			if err != nil || readErr != nil || len(out) > 0 || string(got) != want {
				t.Errorf("%s %s, running: %t, in %s: %v, %s\n%swant\n%s", tt.script, tt.args, tt.running, systemd, err, out, got, want)
			}
		}
	}
}
