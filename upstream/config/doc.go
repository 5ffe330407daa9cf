// Package config turns messages that configure upstream clusters into checked,
// immutable values.
package config
