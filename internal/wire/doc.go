// Package wire writes protobuf messages in the JSON of package jsontext, trims them to
// the fields of a mask, and redacts secrets.
package wire
