// Package configdump makes the messages of the configuration dump from plain
// values: the bootstrap file, clusters, endpoints, listeners, and whatever a
// proxy adds.
//
//	r := configdump.New()
//	r.Set("clusters", func() configdump.Section {
//		return configdump.Clusters(version, static, active, warming)
//	})
//	r.Sections(false)
//
// What there are many of comes one by one when the dump is written, so that it
// never has to be in memory as a whole. Secrets are still in the messages: who
// shows them redacts them.
package configdump
