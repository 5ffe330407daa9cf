package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// directives lists the settings that the units of deploy/systemd can use.
var directives = map[string]string{
	"Unit": "Description Documentation After Wants",
	"Service": "Type NotifyAccess ExecStart ExecReload Restart RestartSec TimeoutStartSec TimeoutStopSec WatchdogSec User Group " +
		"RuntimeDirectory RuntimeDirectoryMode ConfigurationDirectory ConfigurationDirectoryMode LogsDirectory LogsDirectoryMode UMask LimitNOFILE " +
		"AmbientCapabilities CapabilityBoundingSet DevicePolicy LockPersonality MemoryDenyWriteExecute NoNewPrivileges PrivateDevices PrivateMounts PrivateTmp " +
		"PrivateUsers ProtectClock ProtectControlGroups ProtectHome ProtectHostname ProtectKernelLogs ProtectKernelModules ProtectKernelTunables " +
		"ProtectProc ProtectSystem RemoveIPC RestrictAddressFamilies RestrictNamespaces RestrictRealtime RestrictSUIDSGID " +
		"SystemCallArchitectures SystemCallErrorNumber SystemCallFilter",
	"Socket":  "ListenDatagram FileDescriptorName ReceiveBuffer Service",
	"Install": "WantedBy",
}

// unit returns the directives of a unit file, with its section in front.
func unit(t *testing.T, text string) map[string]string {
	t.Helper()
	all := map[string]string{}
	section := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		key, value, isDirective := strings.Cut(line, "=")
		switch {
		case line == "" || line[0] == '#':
		case line[0] == '[':
			section = strings.Trim(line, "[]")
		case !isDirective || !slices.Contains(strings.Fields(directives[section]), key):
			t.Errorf("[%s] has no directive %q", section, line)
		default:
			all[section+"."+key] = value
		}
	}
	return all
}

// TestUnits checks the units of deploy/systemd, also with systemd where it is
// installed, and that the program accepts the command line and the configuration.
func TestUnits(t *testing.T) {
	const dir = "../../deploy/systemd/"
	read := func(name string) string {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	service, socket := read(dir+"statsd-admin.service"), read(dir+"statsd-admin.socket")
	run := unit(t, service)
	for key, want := range map[string]string{"Type": "notify", "ExecReload": "/bin/sh -c 'kill -HUP $MAINPID'", "RuntimeDirectory": "statsd-admin", "User": "statsd-admin"} {
		if got := run["Service."+key]; got != want {
			t.Errorf("%s=%s, want %s", key, got, want)
		}
	}
	config := read("../../deploy/statsd-admin.yaml")
	passed := unit(t, socket)
	if want := "{name: " + passed["Socket.FileDescriptorName"] + `, address: "udp://` + passed["Socket.ListenDatagram"] + `"}`; !strings.Contains(config, want) {
		t.Errorf("the configuration has no listener %s for the socket", want)
	}

	args := strings.Fields(run["Service.ExecStart"])
	if i := slices.Index(args, "/etc/statsd-admin/statsd-admin.yaml"); i < 0 {
		t.Errorf("ExecStart=%s", args)
	} else {
		args[i] = "../../deploy/statsd-admin.yaml"
	}
	var stdout, stderr bytes.Buffer
	p := program{stdout: &stdout, stderr: &stderr, hardware: 2}
	if status := p.run(context.Background(), append(args[1:], "--mode", "validate")); status != 0 || stderr.Len() > 0 {
		t.Errorf("status %d, %s", status, stderr.String())
	}

	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Log("systemd does not check the units: ", err)
		return
	}
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	to := t.TempDir()
	for name, text := range map[string]string{"statsd-admin.service": strings.Replace(service, args[0], own, 1), "statsd-admin.socket": socket} {
		if err := os.WriteFile(filepath.Join(to, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.Command(analyze, "verify", filepath.Join(to, "statsd-admin.service"), filepath.Join(to, "statsd-admin.socket")).CombinedOutput()
	for text := range strings.Lines(string(out)) {
		if !strings.HasPrefix(text, "/lib/systemd/") && !strings.HasPrefix(text, "/usr/lib/systemd/") { // units of other programs
			t.Error("systemd-analyze verify: ", text)
		}
	}
	if err != nil {
		t.Errorf("systemd-analyze verify: %v", err)
	}
	// The level that docs/deployment.md states, in tenths.
	out, err = exec.Command(analyze, "security", "--offline=yes", "--threshold=14", "--no-pager", filepath.Join(to, "statsd-admin.service")).CombinedOutput()
	if err != nil {
		t.Errorf("systemd-analyze security: %v\n%s", err, out)
	}
}
