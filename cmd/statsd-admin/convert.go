package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/statsd-admin/statsd-admin/bootstrap"
	"github.com/statsd-admin/statsd-admin/internal/convert"
	"github.com/statsd-admin/statsd-admin/internal/oneline"
)

// convertCommand converts the configuration of another StatsD server.
func (p *program) convertCommand() *command {
	var from string
	fs := newFlagSet("convert")
	fs.StringVar(&from, "from", "", "`program` whose configuration is read: gostatsd, statsd, telegraf or brubeck; required")
	for _, x := range convert.Programs() {
		choices(fs, "from", append(fs.Lookup("from").Annotations[choicesOf], string(x))...)
	}
	helpFlag(fs)
	return &command{
		name:      "convert",
		arguments: "file",
		most:      1,
		summary:   "convert the configuration of another StatsD server",
		details: "Reads the configuration of gostatsd (TOML, or YAML and JSON by the file extension),\n" +
			"StatsD for Node.js or its proxy (the literal of a JavaScript object, which is not\n" +
			"evaluated), Telegraf (TOML) or brubeck (JSON), from a file or standard input (-), and\n" +
			"prints a valid configuration of this server:\n\n" +
			"    statsd-admin convert --from statsd /etc/statsd/config.js > statsd-admin.yaml\n\n" +
			"Settings without an equivalent become comments in it, and are listed on standard\n" +
			"error with file, line and column. The exit status is 0 if there are none, 1 if\n" +
			"there are any, and 2 if the file cannot be converted or for a wrong command line.\n",
		flags: fs,
		run: func(context.Context) error {
			r, err := p.convert(convert.Program(from), fs.Arg(0))
			if err == nil {
				err = p.print(string(r.YAML))
			}
			if err != nil {
				return usageError{err} // 1 says that something has no equivalent
			}
			for _, n := range r.Notes {
				fmt.Fprintln(p.stderr, oneline.Escape(n.String()))
			}
			if len(r.Notes) > 0 {
				return errShown
			}
			return nil
		},
	}
}

// convert converts a file, and checks the result.
func (p *program) convert(from convert.Program, file string) (*convert.Result, error) {
	switch {
	case from == "":
		return nil, errors.New("error: convert needs --from gostatsd, statsd, telegraf or brubeck")
	case from == "statsd_exporter":
		return nil, errors.New("error: statsd_exporter needs no conversion: its flags and its mapping file work unchanged")
	case !slices.Contains(convert.Programs(), from):
		return nil, fmt.Errorf("error: unknown program '%s': want gostatsd, statsd, telegraf or brubeck", from)
	case file == "":
		return nil, errors.New("error: convert needs a file or -")
	}
	var text []byte
	var err error
	if file == "-" {
		text, err = io.ReadAll(io.LimitReader(p.stdin, convert.MaxBytes+1))
		file = "stdin"
	} else {
		text, err = readFile(file, convert.MaxBytes)
	}
	if err != nil {
		return nil, prefixed(err)
	}
	r, err := convert.Convert(from, file, text, os.LookupEnv)
	if err != nil {
		return nil, err
	}
	if _, err := bootstrap.Load(bootstrap.Source{YAML: string(r.YAML)}, bootstrap.Options{}); err != nil {
		return nil, fmt.Errorf("error: a setting of %s cannot be converted: %s", oneline.Escape(file), strings.ReplaceAll(err.Error(), "--config-yaml", "result"))
	}
	return r, nil
}
