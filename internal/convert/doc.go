// Package convert reads the configuration file of another StatsD server and writes the
// configuration of this one.
//
//	r, err := convert.Convert(convert.Telegraf, "telegraf.conf", text, os.LookupEnv)
//	if err != nil {
//		return err // every error with file, line and column
//	}
//	os.Stdout.Write(r.YAML)
//	for _, n := range r.Notes { // settings without an equivalent
//		fmt.Fprintln(os.Stderr, n)
//	}
//
// A file is first read into a tree of nodes with positions, whatever its syntax: TOML,
// YAML, JSON or the literal of a JavaScript object. A converter takes the settings it
// knows out of the tree. Unknown settings, and settings without an equivalent, become
// notes, which are also comments in the result.
//
// Files are data: nothing in them is executed or opened. References to environment
// variables, which Telegraf has, are replaced in the settings that are converted.
package convert
