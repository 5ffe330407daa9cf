// Package configdump builds the messages of the configuration dump from plain values:
// the bootstrap file, clusters, endpoints, listeners, and the additions of a proxy.
//
//	r := configdump.New()
//	r.Set("clusters", func() configdump.Section {
//		return configdump.Clusters(version, static, active, warming)
//	})
//	r.Sections(false)
//
// Long lists are streamed while the dump is written and never held in memory as
// a whole. The messages still contain secrets, which the writer must redact.
package configdump
