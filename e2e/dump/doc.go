// Package dump reads /clusters and /config_dump of the real binary as the tools
// of operators do: by the messages, section by section, and by lines of text.
package dump
