// Package boundedfile reads files whose names come from elsewhere, so that none of
// them holds the process up or fills its memory.
package boundedfile
