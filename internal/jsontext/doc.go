// Package jsontext writes the JSON of the administration interface: indented by one
// space, members in the order in which they are written, 64-bit numbers as strings,
// so that equal data produces equal bytes.
package jsontext
