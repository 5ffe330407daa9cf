// Package product holds the name of the product where no other is configured.
package product

// Default is in metric names, tags, headers and paths.
const Default = "proxy"
