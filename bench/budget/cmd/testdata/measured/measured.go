// Package measured has benchmarks with known figures, for a test.
package measured
