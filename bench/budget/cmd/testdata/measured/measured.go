// Package measured has benchmarks that report fixed figures, for a test.
package measured
