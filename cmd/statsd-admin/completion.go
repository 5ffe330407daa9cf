package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"
)

// shells are the supported shells, with the writers of their scripts.
var shells = [...]struct {
	name  string
	write func(io.Writer, []scope)
}{
	{"bash", writeBash},
	{"fish", writeFish},
	{"zsh", writeZsh},
}

// completionCommand prints a script that completes command lines in a shell.
func (p *program) completionCommand() *command {
	fs := newFlagSet("completion")
	helpFlag(fs)
	c := &command{
		name:      "completion",
		arguments: "bash|fish|zsh",
		most:      1,
		summary:   "print a completion script for a shell",
		details: "Prints a script that completes command lines of statsd-admin in a shell:\n\n" +
			"    statsd-admin completion bash >/usr/share/bash-completion/completions/statsd-admin\n" +
			"    statsd-admin completion fish >/usr/share/fish/vendor_completions.d/statsd-admin.fish\n" +
			"    statsd-admin completion zsh >/usr/share/zsh/vendor-completions/_statsd-admin\n\n" +
			"The exit status is 0, or 2 for a wrong command line.\n",
		flags: fs,
		run:   func(context.Context) error { return p.completion(fs.Args()) },
	}
	for _, shell := range shells {
		c.words = append(c.words, shell.name)
	}
	return c
}

func (p *program) completion(args []string) error {
	if len(args) == 0 {
		return usageError{errors.New("error: completion needs the name of a shell: bash, fish or zsh")}
	}
	for _, shell := range shells {
		if shell.name != args[0] {
			continue
		}
		var b strings.Builder
		shell.write(&b, p.scopes())
		return p.print(b.String())
	}
	return usageError{fmt.Errorf("error: unknown shell '%s': want bash, fish or zsh", args[0])}
}

// A scope is what can follow on a command line: after the program's name, or
// after that of a subcommand.
type scope struct {
	command string // "" for the program itself
	summary string
	flags   []completedFlag
	words   []string // arguments to suggest
	files   bool     // arguments are files
}

// completedFlag is a flag as completion scripts see it.
type completedFlag struct {
	name, short, description string
	value                    bool // it takes one
	choices                  []string
	file                     bool // its value is the path of a file
}

// choicesOf is the annotation that lists all values of a flag.
const choicesOf = "choices"

// choices declares the values that a flag takes, for completion.
func choices(fs *pflag.FlagSet, flag string, values ...string) {
	f := fs.Lookup(flag)
	f.Annotations = map[string][]string{choicesOf: values}
}

func (p *program) scopes() []scope {
	all := []scope{{flags: append(completedFlags(daemonFlags()), completedFlags(exporterFlagSet(new(exporterFlags)))...)}}
	for _, c := range p.commands() {
		all[0].words = append(all[0].words, c.name)
		all = append(all, scope{c.name, c.summary, completedFlags(c.flags), c.words, len(c.words) == 0 && c.most != 0})
	}
	return all
}

func completedFlags(fs *pflag.FlagSet) (flags []completedFlag) {
	fs.VisitAll(func(f *pflag.Flag) {
		placeholder, usage := pflag.UnquoteUsage(f)
		// Scripts show one line without the details that follow a semicolon.
		usage, _, _ = strings.Cut(usage, "; ")
		flags = append(flags, completedFlag{
			name: f.Name, short: f.Shorthand, description: usage,
			value: f.NoOptDefVal == "", choices: f.Annotations[choicesOf], file: placeholder == "file",
		})
	})
	return flags
}

func writeBash(w io.Writer, scopes []scope) {
	fmt.Fprint(w, "# bash completion for statsd-admin\n\n_statsd_admin() {\n"+
		"\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command= i\n"+
		"\tfor ((i = 1; i < COMP_CWORD; i++)); do\n\t\tcase ${COMP_WORDS[i]} in\n\t\t")
	fmt.Fprintf(w, "%s)\n\t\t\t((i == 1)) && command=${COMP_WORDS[i]}\n\t\t\t;;\n\t\tesac\n\tdone\n", strings.Join(scopes[0].words, " | "))
	fmt.Fprint(w, "\t# --flag=value arrives as three words.\n"+
		"\tif [[ $cur == = ]]; then\n\t\tcur=\n\telif [[ $prev == = ]]; then\n\t\tprev=${COMP_WORDS[COMP_CWORD-2]}\n\tfi\n"+
		"\tCOMPREPLY=()\n\tcase \"$command $prev\" in\n")
	for _, s := range scopes {
		for _, f := range s.flags {
			if !f.value {
				continue
			}
			pattern := fmt.Sprintf("%q", s.command+" --"+f.name)
			if f.short != "" {
				pattern += fmt.Sprintf(" | %q", s.command+" -"+f.short)
			}
			fmt.Fprintf(w, "\t%s)\n", pattern)
			switch {
			case f.file:
				fmt.Fprint(w, "\t\tcompopt -o filenames 2>/dev/null\n\t\tCOMPREPLY=($(compgen -f -- \"$cur\"))\n")
			case len(f.choices) > 0:
				fmt.Fprintf(w, "\t\tCOMPREPLY=($(compgen -W %q -- \"$cur\"))\n", strings.Join(f.choices, " "))
			}
			fmt.Fprint(w, "\t\treturn\n\t\t;;\n")
		}
	}
	fmt.Fprint(w, "\tesac\n\tlocal words= files=\n\tcase $command in\n")
	for _, s := range scopes {
		flags := make([]string, len(s.flags))
		for i, f := range s.flags {
			flags[i] = "--" + f.name
		}
		pattern := s.command
		pattern = cmp.Or(pattern, `""`)
		fmt.Fprintf(w, "\t%s)\n\t\t[[ $cur == -* ]] && words=%q || words=%q\n", pattern, strings.Join(flags, " "), strings.Join(s.words, " "))
		if s.files {
			fmt.Fprint(w, "\t\tfiles=1\n")
		}
		if s.command == "" {
			fmt.Fprint(w, "\t\t[[ $cur == -* ]] || ((COMP_CWORD == 1)) || words=\n")
		}
		fmt.Fprint(w, "\t\t;;\n")
	}
	fmt.Fprint(w, "\tesac\n\tCOMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"+
		"\tif [[ $files && $cur != -* ]]; then\n\t\tcompopt -o filenames 2>/dev/null\n\t\tCOMPREPLY=($(compgen -f -- \"$cur\"))\n\tfi\n}\n\n"+
		"complete -F _statsd_admin statsd-admin\n")
}

func writeFish(w io.Writer, scopes []scope) {
	fmt.Fprintf(w, "# fish completion for statsd-admin\n\nset -l commands %s\ncomplete -c statsd-admin -f\n", strings.Join(scopes[0].words, " "))
	for _, s := range scopes {
		condition := `"not __fish_seen_subcommand_from $commands"`
		if s.command != "" {
			fmt.Fprintf(w, "complete -c statsd-admin -n \"not __fish_seen_subcommand_from $commands\" -a %s -d %s\n", s.command, fishQuoted(s.summary))
			condition = fishQuoted("__fish_seen_subcommand_from " + s.command)
			if s.files {
				fmt.Fprintf(w, "complete -c statsd-admin -n %s -F\n", condition)
			} else if len(s.words) > 0 {
				fmt.Fprintf(w, "complete -c statsd-admin -n %s -a %s\n", condition, fishQuoted(strings.Join(s.words, " ")))
			}
		}
		for _, f := range s.flags {
			fmt.Fprintf(w, "complete -c statsd-admin -n %s -l %s", condition, f.name)
			if f.short != "" {
				fmt.Fprintf(w, " -s %s", f.short)
			}
			switch {
			case f.file:
				fmt.Fprint(w, " -r -F")
			case len(f.choices) > 0:
				fmt.Fprintf(w, " -x -a %s", fishQuoted(strings.Join(f.choices, " ")))
			case f.value:
				fmt.Fprint(w, " -x")
			}
			fmt.Fprintf(w, " -d %s\n", fishQuoted(f.description))
		}
	}
}

// fishQuoted returns s as one word of fish, in single quotes.
func fishQuoted(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s) + "'"
}

func writeZsh(w io.Writer, scopes []scope) {
	fmt.Fprint(w, "#compdef statsd-admin\n\n_statsd-admin() {\n\tlocal -a commands\n\tcommands=(\n")
	for _, s := range scopes[1:] {
		fmt.Fprintf(w, "\t\t%s\n", zshQuoted(s.command+":"+s.summary))
	}
	fmt.Fprint(w, "\t)\n\tlocal command=\n\tif ((CURRENT > 2)) && [[ -n ${(M)commands:#$words[2]:*} ]]; then\n"+
		"\t\tcommand=$words[2]\n\t\tshift words\n\t\t((CURRENT--))\n\tfi\n\tcase $command in\n")
	for _, s := range scopes {
		pattern := cmp.Or(s.command, "''")
		fmt.Fprintf(w, "\t%s)\n\t\t_arguments -S", pattern)
		for _, f := range s.flags {
			fmt.Fprintf(w, " \\\n\t\t\t%s", zshFlag(f))
		}
		switch {
		case s.command == "":
			fmt.Fprint(w, " \\\n\t\t\t'1:command:{_describe command commands}'")
		case s.files:
			fmt.Fprint(w, " \\\n\t\t\t'*:file:_files'")
		case len(s.words) > 0:
			fmt.Fprintf(w, " \\\n\t\t\t%s", zshQuoted("1: :("+strings.Join(s.words, " ")+")"))
		}
		fmt.Fprint(w, "\n\t\t;;\n")
	}
	fmt.Fprint(w, "\tesac\n}\n\n_statsd-admin \"$@\"\n")
}

// zshFlag returns the specification of a flag for _arguments.
func zshFlag(f completedFlag) string {
	suffix := "[" + strings.NewReplacer(`\`, `\\`, "[", `\[`, "]", `\]`, ":", `\:`).Replace(f.description) + "]"
	long, short := "--"+f.name, "-"+f.short
	if f.value {
		action := " "
		switch {
		case f.file:
			action = "_files"
		case len(f.choices) > 0:
			action = "(" + strings.Join(f.choices, " ") + ")"
		}
		suffix += ": :" + action
		long, short = long+"=", short+"+"
	}
	if f.short == "" {
		return zshQuoted(long + suffix)
	}
	return fmt.Sprintf("'(-%s --%s)'{%s,%s}%s", f.short, f.name, short, long, zshQuoted(suffix))
}

// zshQuoted returns s as one word of zsh, in single quotes.
func zshQuoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
