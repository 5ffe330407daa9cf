// Package product holds the name of the product where no other is configured.
package product

import "strings"

// Default is in metric names, tags, headers and paths.
const Default = "proxy"

// Version returns the version out of an identifier such as
// revision/version/status/type/library.
func Version(id string) string {
	if parts := strings.Split(id, "/"); len(parts) == 5 {
		return parts[1]
	}
	return id
}
