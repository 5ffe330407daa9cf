package main

import (
	"context"
	"strings"

	"github.com/spf13/pflag"
)

// manCommand prints the manual page.
func (p *program) manCommand() *command {
	fs := newFlagSet("man")
	helpFlag(fs)
	return &command{
		name:    "man",
		summary: "print the manual page",
		details: "Prints the manual page in the man format of roff, with all subcommands:\n\n" +
			"    statsd-admin man >/usr/share/man/man8/statsd-admin.8\n\n" +
			"The exit status is 0, or 2 for a wrong command line.\n",
		flags: fs,
		run: func(context.Context) error {
			return p.print(p.manual())
		},
	}
}

// manual returns the manual page, in the format of man(7).
func (p *program) manual() string {
	var b strings.Builder
	b.WriteString(".TH STATSD\\-ADMIN 8 \"\" \"statsd\\-admin\"\n.SH NAME\nstatsd\\-admin \\- " + roff(programSummary) + "\n.SH SYNOPSIS\n")
	b.WriteString(".B statsd\\-admin\n[flags]\n")
	commands := p.commands()
	for _, c := range commands {
		b.WriteString(".br\n.B statsd\\-admin " + roff(c.name) + "\n" + roff(strings.TrimSpace("[flags] "+c.arguments)) + "\n")
	}
	b.WriteString(".SH DESCRIPTION\nWithout a subcommand, statsd\\-admin runs the server: it ingests StatsD and serves the administration interface.\n" +
		roffLines(programExit) + ".SH OPTIONS\n")
	manFlags(&b, daemonFlags())
	b.WriteString(".SS Flags of statsd_exporter\n" + roffLines(exporterSummary))
	manFlags(&b, exporterFlagSet(new(exporterFlags)))
	b.WriteString(".SH COMMANDS\n")
	for _, c := range commands {
		b.WriteString(".SS " + roff(c.synopsis()) + "\n" + roffLines(c.details))
		manFlags(&b, c.flags)
	}
	b.WriteString(".SH SIGNALS\n.TP\n.BR SIGTERM \", \" SIGINT\nEnd the server after a last flush.\n" +
		".TP\n.B SIGHUP\nReload certificates, tokens and runtime layers.\n.TP\n.B SIGUSR1\nReopen the log files.\n.TP\n.B SIGUSR2\nStart the program again; the new process takes over by hot restart.\n" +
		".SH FILES\n.TP\n.I /etc/statsd\\-admin/statsd\\-admin.yaml\nThe configuration of the packaged service.\n")
	return b.String()
}

func manFlags(b *strings.Builder, fs *pflag.FlagSet) {
	fs.VisitAll(func(f *pflag.Flag) {
		placeholder, usage := pflag.UnquoteUsage(f)
		b.WriteString(".TP\n")
		names := `\-\-` + roff(f.Name)
		if f.Shorthand != "" {
			names = `\-` + f.Shorthand + ", " + names
		}
		if f.NoOptDefVal != "" {
			b.WriteString(".B " + names + "\n")
		} else {
			b.WriteString(`.BI "` + names + ` " "` + roff(placeholder) + "\"\n")
		}
		switch f.DefValue {
		case "", "false", "[]":
		default:
			usage += " (default " + f.DefValue + ")"
		}
		b.WriteString(roff(usage) + "\n")
	})
}

// roffLines returns paragraphs of text. Lines that begin with blanks are shown as they are.
func roffLines(s string) string {
	var b strings.Builder
	example := false
	for line := range strings.Lines(s) {
		line = strings.TrimSuffix(line, "\n")
		if indented := strings.HasPrefix(line, " "); indented != example && line != "" {
			example = indented
			if example {
				b.WriteString(".nf\n")
			} else {
				b.WriteString(".fi\n.PP\n")
			}
		}
		if line == "" {
			if !example {
				b.WriteString(".PP\n")
			}
			continue
		}
		b.WriteString(roff(line) + "\n")
	}
	if example {
		b.WriteString(".fi\n")
	}
	return b.String()
}

// roff escapes text for a line of roff: backslashes, hyphens, and a dot or quote at the
// beginning.
func roff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`, `"`, `\(dq`).Replace(s)
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		s = `\&` + s
	}
	return s
}
