// Package boundedfile reads files with untrusted names, so that none of them can
// block the process or fill its memory.
package boundedfile
