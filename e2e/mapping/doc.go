// Package mapping compares mapping rules with those of statsd_exporter.
package mapping
