// Package layers implements runtime values: settings that change while a server runs,
// read from a stack of layers in which later ones win.
//
//	values, err := layers.New(layers.Config{Layers: []layers.Layer{
//		{Name: "base", Kind: layers.Static, Values: map[string]any{"limits": map[string]any{"sessions": 200}}},
//		{Name: "disk", Kind: layers.Disk, SymlinkRoot: "/srv/runtime/current"},
//		{Name: "admin", Kind: layers.Admin},
//	}})
//	go values.Run(ctx) // follows changes on disk
//
//	now := values.Snapshot() // one consistent view for the work at hand
//	sessions := now.Uint("limits.sessions", 100)
//
// Every change builds a new immutable [Snapshot]. Values are parsed at that time, so
// reading one is a map lookup without lock or allocation. A [Loader] and its
// snapshots are safe for concurrent use.
package layers
