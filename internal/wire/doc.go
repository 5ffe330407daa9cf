// Package wire writes the JSON of the administration interface: indented by
// one space, members in the order in which they are written, numbers of 64
// bits as strings, so that the same data gives the same bytes.
package wire
