// Package wire writes the JSON of the administration interface: indented by
// one space, members in the order in which they are written, numbers of 64
// bits as strings, so that the same data gives the same bytes. It writes
// protobuf messages in that form, cuts them down to the fields of a mask, and
// takes secrets out of them.
package wire
