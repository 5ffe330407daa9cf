// Package mapping compares our mapping rules with statsd_exporter's.
package mapping
