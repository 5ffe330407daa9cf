// Package wire writes the JSON of the administration interface: indented by one
// space, members in the order in which they are written, 64-bit numbers as strings,
// so that equal data produces equal bytes. It writes protobuf messages in that form,
// trims them to the fields of a mask, and redacts secrets.
package wire
