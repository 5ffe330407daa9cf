// Package dump reads /clusters and /config_dump of the real binary as operators'
// tools do: as messages, by section, and as lines of text.
package dump
