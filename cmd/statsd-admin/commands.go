package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// A command is a subcommand. Its help text, its manual page and its completion
// are all made from these fields.
type command struct {
	name      string
	arguments string // as the synopsis shows them, such as "path"
	most      int    // arguments; a negative number allows any
	summary   string // completes "statsd-admin NAME: "
	details   string // what it does and its exit status, in lines of up to 80 bytes
	flags     *pflag.FlagSet
	words     []string // arguments to suggest; without them files are suggested if any argument is allowed
	// run gets a command line whose flags are parsed.
	run func(ctx context.Context) error
}

// commands returns the subcommands in the order in which they are listed.
func (p *program) commands() []*command {
	return []*command{
		p.bundleCommand(),
		p.completionCommand(),
		p.convertCommand(),
		p.explainCommand(),
		p.getCommand(),
		p.healthcheckCommand(),
		p.lintCommand(),
		p.manCommand(),
		p.sendCommand(),
		p.topCommand(),
	}
}

// subcommand returns the subcommand that args name, or nil.
func (p *program) subcommand(args []string) *command {
	if len(args) == 0 || args[0] == "" || args[0][0] == '-' {
		return nil
	}
	commands := p.commands()
	i := slices.IndexFunc(commands, func(c *command) bool { return c.name == args[0] })
	if i < 0 {
		return nil
	}
	return commands[i]
}

// runCommand parses the arguments of a subcommand and runs it.
func (p *program) runCommand(ctx context.Context, c *command, args []string) error {
	if err := flagError(c.flags, c.flags.Parse(withoutNegations(c.flags, args))); err != nil {
		return usageError{err}
	}
	if help, err := c.flags.GetBool("help"); err == nil && help {
		return p.print(c.usage())
	}
	if rest := c.flags.Args(); c.most >= 0 && len(rest) > c.most {
		return usageError{fmt.Errorf("error: Couldn't find match for argument: %s", cmp.Or(rest[c.most], "''"))}
	}
	return c.run(ctx)
}

// synopsis returns the command line in short.
func (c *command) synopsis() string {
	return strings.TrimSpace("statsd-admin " + c.name + " [flags] " + c.arguments)
}

// usage returns the text of the subcommand's --help.
func (c *command) usage() string {
	return "usage: " + c.synopsis() + "\n\n" + c.details + "\n" + c.flags.FlagUsages()
}

// usageError is an error of the command line of a subcommand.
type usageError struct{ error }

// errShown ends a subcommand whose output shows why it has the exit status of a failure.
var errShown = errors.New("the output shows the error")

// exitStatus returns the exit status for err. It prints err unless the output shows it.
func (p *program) exitStatus(err error) int {
	if err == nil {
		return 0
	}
	if !errors.Is(err, errShown) {
		fmt.Fprintln(p.stderr, err)
	}
	if _, ok := errors.AsType[usageError](err); ok {
		return exitUsage
	}
	return exitFailed
}

// Exit statuses.
const (
	exitFailed = 1
	exitUsage  = 2
)

func helpFlag(fs *pflag.FlagSet) {
	fs.BoolP("help", "h", false, "print this help and exit")
}

const (
	programSummary  = "statistics engine and administration interface of network proxies"
	programExit     = "The exit status is 0 after a clean stop and 1 after any error. Each subcommand has a\n--help, which lists its own.\n"
	exporterSummary = "With flags of statsd_exporter, and none of the above, the server behaves as that\nprogram does, without a configuration file; --no-NAME turns a switch off:\n"
)

// usage returns the text of the program's --help.
func (p *program) usage() string {
	var b strings.Builder
	b.WriteString("statsd-admin: " + programSummary + "\n\nusage: statsd-admin [flags]\n")
	for _, c := range p.commands() {
		fmt.Fprintf(&b, "       %-50s %s\n", c.synopsis(), c.summary)
	}
	b.WriteString("\n" + programExit + "\n" + daemonFlags().FlagUsages())
	b.WriteString("\n" + exporterSummary + "\n" + exporterFlagSet(new(exporterFlags)).FlagUsages())
	return b.String()
}

// daemonFlags returns the flags of the program without a subcommand.
func daemonFlags() *pflag.FlagSet {
	return flagSet(new(Options), new(rawOptions))
}
