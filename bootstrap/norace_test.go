//go:build !race

package bootstrap

const slowdown = 1
