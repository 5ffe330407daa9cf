package main

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/statsd-admin/statsd-admin/internal/golden"
	"github.com/statsd-admin/statsd-admin/server"
	"github.com/statsd-admin/statsd-admin/server/logctl"
)

// defaults is what an empty command line means on a machine with 4 CPUs.
func defaults() Options {
	return Options{Product: "proxy", CommandLine: server.CommandLine{
		Mode: ModeServe, LocalAddressIPVersion: "v4", Concurrency: 4,
		LogLevel: "info", LogFormat: "[%Y-%m-%d %T.%e][%t][%l][%n] [%g:%#] %v",
		FileFlushInterval: 10 * time.Second, FileFlushMinSize: 64,
		DrainTime: 600 * time.Second, DrainStrategy: "Gradual", ParentShutdownTime: 900 * time.Second,
		SocketPath: "@proxy_domain_socket",
	}}
}

func TestFlags(t *testing.T) {
	tests := []struct {
		args string // separated by blanks
		want func(*Options)
	}{
		{"", func(o *Options) {}},
		{"-c a.yaml", func(o *Options) { o.ConfigPath = "a.yaml" }},
		{"--config-path a.yaml", func(o *Options) { o.ConfigPath = "a.yaml" }},
		{"--config-path=a.yaml", func(o *Options) { o.ConfigPath = "a.yaml" }},
		{"--config-path --mode", func(o *Options) { o.ConfigPath = "--mode" }},
		{"--config-yaml {a:1}", func(o *Options) { o.ConfigYAML = "{a:1}" }},
		{"--mode serve", func(o *Options) { o.Mode = ModeServe }},
		{"--mode validate", func(o *Options) { o.Mode = ModeValidate }},
		{"--mode init_only", func(o *Options) { o.Mode = ModeInitOnly }},
		{"--product-name envoy", func(o *Options) { o.Product, o.SocketPath = "envoy", "@envoy_domain_socket" }},
		{"--admin-address-path /tmp/a", func(o *Options) { o.AdminAddressPath = "/tmp/a" }},
		{"--local-address-ip-version v6", func(o *Options) { o.LocalAddressIPVersion = "v6" }},
		{"--base-id 7", func(o *Options) { o.BaseID = 7 }},
		{"--use-dynamic-base-id", func(o *Options) { o.UseDynamicBaseID = true }},
		{"--base-id-path /tmp/b", func(o *Options) { o.BaseIDPath = "/tmp/b" }},
		{"--concurrency 3", func(o *Options) { o.Concurrency, o.ConcurrencySet = 3, true }},
		{"--concurrency 0", func(o *Options) { o.Concurrency, o.ConcurrencySet = 1, true }},
		{"--cpuset-threads", func(o *Options) { o.CPUSetThreads = true }},
		{"--cpuset-threads --concurrency 2", func(o *Options) {
			o.Concurrency, o.ConcurrencySet = 2, true
			o.Warnings = []string{"Both --concurrency and --cpuset-threads options are set; not applying --cpuset-threads."}
		}},
		{"-l debug", func(o *Options) { o.LogLevel = "debug" }},
		{"--log-level trace", func(o *Options) { o.LogLevel = "trace" }},
		{"--log-level warn", func(o *Options) { o.LogLevel = "warning" }},
		{"--log-level warning", func(o *Options) { o.LogLevel = "warning" }},
		{"--log-level error", func(o *Options) { o.LogLevel = "error" }},
		{"--log-level critical", func(o *Options) { o.LogLevel = "critical" }},
		{"--log-level off", func(o *Options) { o.LogLevel = "off" }},
		{"--component-log-level ,admin:debug,,main:warn,", func(o *Options) {
			o.ComponentLogLevel = ",admin:debug,,main:warn,"
			o.ComponentLevels = map[string]logctl.Level{"admin": logctl.Debug, "main": logctl.Warning}
		}},
		{"--log-path /tmp/l", func(o *Options) { o.LogPath = "/tmp/l" }},
		{"--log-format %v", func(o *Options) { o.LogFormat, o.LogFormatSet = "%v", true }},
		{"--log-format-escaped", func(o *Options) { o.LogFormatEscaped = true }},
		{"--log-stacktrace-single-entry", func(o *Options) { o.LogStacktraceSingleEntry = true }},
		{"--enable-fine-grain-logging", func(o *Options) { o.EnableFineGrainLogging = true }},
		{"--restart-epoch 2", func(o *Options) { o.RestartEpoch = 2 }},
		{"--service-cluster a --service-node b --service-zone c", func(o *Options) {
			o.ServiceCluster, o.ServiceNode, o.ServiceZone = "a", "b", "c"
		}},
		{"--file-flush-interval-msec 250", func(o *Options) { o.FileFlushInterval = 250 * time.Millisecond }},
		{"--file-flush-min-size-kb 1", func(o *Options) { o.FileFlushMinSize = 1 }},
		{"--drain-time-s 5", func(o *Options) { o.DrainTime = 5 * time.Second }},
		{"--drain-strategy gradual", func(o *Options) { o.DrainStrategy = "Gradual" }},
		{"--drain-strategy immediate", func(o *Options) { o.DrainStrategy = "Immediate" }},
		{"--parent-shutdown-time-s 6", func(o *Options) { o.ParentShutdownTime = 6 * time.Second }},
		{"--disable-hot-restart", func(o *Options) { o.DisableHotRestart = true }},
		{"--enable-mutex-tracing", func(o *Options) { o.EnableMutexTracing = true }},
		{"--allow-unknown-fields", func(o *Options) {
			o.AllowUnknownStaticFields = true
			o.Warnings = []string{"--allow-unknown-fields is deprecated, use --allow-unknown-static-fields instead."}
		}},
		{"--allow-unknown-static-fields", func(o *Options) { o.AllowUnknownStaticFields = true }},
		{"--reject-unknown-dynamic-fields", func(o *Options) { o.RejectUnknownDynamicFields = true }},
		{"--ignore-unknown-dynamic-fields", func(o *Options) { o.IgnoreUnknownDynamicFields = true }},
		{"--disable-extensions ,a/b,,c", func(o *Options) {
			o.DisabledExtensions = []string{"a/b", "c"}
			o.Warnings = []string{"failed to disable unknown extension 'a/b'", "failed to disable invalid extension name 'c'"}
		}},
		{"--socket-path @x", func(o *Options) { o.SocketPath = "@x" }},
		{"--socket-path /tmp/s", func(o *Options) { o.SocketPath, o.SocketMode = "/tmp/s", 0o600 }},
		{"--socket-path /tmp/s --socket-mode 777", func(o *Options) { o.SocketPath, o.SocketMode = "/tmp/s", 0o777 }},
		{"--socket-path /tmp/s --socket-mode 660", func(o *Options) { o.SocketPath, o.SocketMode = "/tmp/s", 0o660 }},
		{"--socket-mode 660", func(o *Options) {}},
		{"--enable-core-dump", func(o *Options) { o.EnableCoreDump = true }},
		{"--stats-tag a:b --stats-tag c:d:e --stats-tag f:", func(o *Options) {
			o.StatsTags = []string{"a:b", "c:d:e", "f:"}
		}},
		{"--skip-hot-restart-on-no-parent", func(o *Options) { o.SkipHotRestartOnNoParent = true }},
		{"--skip-hot-restart-parent-stats", func(o *Options) { o.SkipHotRestartParentStats = true }},
		{"--skip-deprecated-logs", func(o *Options) { o.SkipDeprecatedLogs = true }},
		{"--use-fake-symbol-table 1", func(o *Options) { o.UseFakeSymbolTable = true }},
		{"--use-fake-symbol-table 0", func(o *Options) {}},
		{"--max-stats 100000000 --max-obj-name-len 60", func(o *Options) {}},
		{"-l debug -- whatever follows --mode x", func(o *Options) { o.LogLevel = "debug" }},
	}
	tested := make(map[string]bool)
	for _, tt := range tests {
		t.Run(tt.args, func(t *testing.T) {
			got, request, err := parseOptions(strings.Fields(tt.args), 4)
			if err != nil || request != runServer {
				t.Fatalf("request %v, err %v", request, err)
			}
			want := defaults()
			tt.want(&want)
			got.Args = nil // TestArgumentsOfSuccessors
			if diff := cmp.Diff(want, *got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
		for _, arg := range strings.Fields(tt.args) {
			name, _, _ := strings.Cut(arg, "=")
			tested[name] = true
		}
	}
	var o Options
	var r rawOptions
	flagSet(&o, &r).VisitAll(func(f *pflag.Flag) {
		switch f.Name {
		case "help", "version", "hot-restart-version": // TestRequests
		default:
			if !tested["--"+f.Name] {
				t.Errorf("--%s has no test", f.Name)
			}
		}
	})
}

func TestFlagErrors(t *testing.T) {
	tests := []struct{ args, want string }{
		{"--nonsense", "error: Couldn't find match for argument: --nonsense"},
		{"-x", "error: Couldn't find match for argument: -x"},
		{"file.yaml", "error: Couldn't find match for argument: file.yaml; did you mean --config-path file.yaml?"},
		{"file.txt", "error: Couldn't find match for argument: file.txt"},
		{"bundel", "error: Couldn't find match for argument: bundel; did you mean bundle?"},
		{"validate", "error: Couldn't find match for argument: validate; did you mean --mode validate?"},
		{"version", "error: Couldn't find match for argument: version; did you mean --version?"},
		{"--hlep", "error: Couldn't find match for argument: --hlep; did you mean --help?"},
		{"--config", "error: Couldn't find match for argument: --config; did you mean --config-path or --config-yaml?"},
		{"--enable", "error: Couldn't find match for argument: --enable"}, // three begin with it
		{"--config-path", "error: Missing a value for this argument: --config-path"},
		{"--mode test", "error: unknown mode 'test'"},
		{"--local-address-ip-version v5", "error: unknown IP address version 'v5'"},
		{"--use-dynamic-base-id --restart-epoch 1", "error: cannot use --restart-epoch=1 with --use-dynamic-base-id"},
		{"--log-level loud", "error: invalid log level specified 'loud'"},
		{"--log-level Info", "error: invalid log level specified 'Info'"},
		{"--component-log-level admin", "error: component log level not correctly specified 'admin'"},
		{"--component-log-level admin:info:x", "error: component log level not correctly specified 'admin:info:x'"},
		{"--component-log-level admin:", "error: invalid log level specified ''"},
		{"--component-log-level :info", "error: invalid component specified ''"},
		{"--component-log-levels admin:info", "error: Couldn't find match for argument: --component-log-levels; did you mean --component-log-level?"},
		{"--config-pth a", "error: Couldn't find match for argument: --config-pth; did you mean --config-path?"},
		{"--component-log-level nobody:loud", "error: invalid log level specified 'loud'"},
		{"--component-log-level nobody:info,admin", "error: invalid component specified 'nobody'\nerror: component log level not correctly specified 'admin'"},
		{"--component-log-level nobody:info", "error: invalid component specified 'nobody'"},
		{"--component-log-level admin:info --enable-fine-grain-logging", "error: --component-log-level will not work with --enable-fine-grain-logging"},
		{"--drain-strategy slow", "error: unknown drain-strategy 'slow'"},
		{"--socket-mode 888", "error: invalid socket-mode '888'"},
		{"--socket-mode 1000", "error: invalid socket-mode '1000'"},
		{"--socket-mode 1777", "error: invalid socket-mode '1777'"},
		{"--socket-path=", "error: socket-path must not be empty"},
		{"--stats-tag ab", "error: misformatted stats-tag 'ab'"},
		{"--stats-tag :b", "error: misformatted stats-tag ':b'"},
		{"--stats-tag a-b:c", "error: misformatted stats-tag 'a-b:c' contains invalid char in 'a-b'"},
		{"--stats-tag a:c.d", "error: misformatted stats-tag 'a:c.d' contains invalid char in 'c.d'"},
		{"--stats-tag ab --stats-tag :b", "error: misformatted stats-tag 'ab'\nerror: misformatted stats-tag ':b'"},
		{"--concurrency many", "error: Couldn't read argument value: --concurrency: \"many\" is not an integer in [0, 4294967295]"},
		{"--drain-time-s -1", "error: Couldn't read argument value: --drain-time-s: \"-1\" is not an integer in [0, 4294967295]"},
		{"--product-name 1st", "error: invalid product-name '1st': want a letter, then letters, digits and _, 64 at most"},
		{"--product-name a.b", "error: invalid product-name 'a.b': want a letter, then letters, digits and _, 64 at most"},
		{"--max-stats 100000001", "error: the 'max-stats' value specified (100000001) is more than the max value of 100000000"},
		{"--max-obj-name-len 59", "error: the 'max-obj-name-len' value specified (59) is less than the minimum value of 60"},
		{"--use-fake-symbol-table 2", "error: invalid use-fake-symbol-table '2': want 0 or 1"},
		{"--mode a --log-level b --drain-strategy c", "error: unknown mode 'a'\nerror: invalid log level specified 'b'\nerror: unknown drain-strategy 'c'"},
	}
	for _, tt := range tests {
		t.Run(tt.args, func(t *testing.T) {
			o, _, err := parseOptions(strings.Fields(tt.args), 4)
			if err == nil || err.Error() != tt.want {
				t.Errorf("got options %v, error\n%v\nwant\n%s", o, err, tt.want)
			}
		})
	}
}

func TestRequests(t *testing.T) {
	tests := []struct {
		args string
		want request
	}{
		{"--help", showHelp}, {"-h", showHelp}, {"--version", showVersion}, {"--hot-restart-version", showHotRestartVersion},
	}
	for _, tt := range tests {
		_, got, err := parseOptions(strings.Fields(tt.args), 4)
		if err != nil || got != tt.want {
			t.Errorf("%s: %v, %v; want %v", tt.args, got, err, tt.want)
		}
	}
}

func TestHelpText(t *testing.T) {
	text := new(program).usage()
	if !strings.Contains(text, "[trace][debug][info][warning|warn][error][critical][off]") {
		t.Error("the levels are not listed")
	}
	golden.Check(t, "help", []byte(text))
}

// TestAlphabetsOfOptions compares checks of single bytes with a regular expression.
func TestAlphabetsOfOptions(t *testing.T) {
	letter, word, alphanumeric := regexp.MustCompile("^[A-Za-z]$"), regexp.MustCompile("^[A-Za-z0-9_]$"), regexp.MustCompile("^[A-Za-z0-9]$")
	for i := range 256 {
		c := string([]byte{byte(i)})
		if got := validProduct(c); got != letter.MatchString(c) {
			t.Errorf("product name %q: %t", c, got)
		}
		if got := validProduct("a" + c); got != word.MatchString(c) {
			t.Errorf("product name %q: %t", "a"+c, got)
		}
		if err := checkStatsTag("a" + c + "b:v"); (err == nil) != (alphanumeric.MatchString(c) || c == ":") {
			t.Errorf("stats tag %q: %v", "a"+c+"b:v", err)
		}
	}
	if !validProduct(strings.Repeat("a", 64)) || validProduct(strings.Repeat("a", 65)) || validProduct("") {
		t.Error("limits of the length of a product name")
	}
}

// TestNearestFlag expects a third of the letters to change at most, or one or two longer flags.
func TestNearestFlag(t *testing.T) {
	fs := newFlagSet("")
	for _, name := range []string{"abc", "abcdef", "another", "long-name", "long-word", "single-flag"} {
		fs.Bool(name, false, "")
	}
	for name, want := range map[string]string{
		"abx": "--abc", "axx": "", "ax": "", "ab": "--abc or --abcdef", "abcxxf": "--abcdef", "abcxxx": "", "abcdf": "--abcdef", "abxdf": "",
		"long": "--long-name or --long-word", "a": "", "long-n": "--long-name", "s": "--single-flag", "": "", "x": "",
	} {
		if got := nearestFlag(fs, name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
