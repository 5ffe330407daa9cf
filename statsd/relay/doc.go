// Package relay forwards received StatsD lines to other servers, unchanged.
//
//	r, err := relay.New(relay.Config{Store: st, Parser: parser, Routes: []relay.Route{{
//		Hash:    relay.Name,
//		Targets: []relay.Target{{Address: "tcp://10.0.0.1:8125"}, {Address: "tcp://10.0.0.2:8125"}},
//	}}})
//	w := r.NewWriter(&mu)  // one for each reader
//	w.Add(&line)           // with mu locked
//	stop := r.Start()
//
// A route sends each line to all of its targets or, by a rendezvous hash, to one:
// every relay with the same targets picks the same one for a name, so the samples of
// a timer or a set meet in one server, and when a target leaves, only its lines move.
//
// A [Writer] packs lines without locks of its own and without an allocation per line.
// Full packets go to the queue of their target, which is bounded in bytes and drops
// the oldest, so a target that is slow or dead delays neither a writer nor the other
// targets. A target that fails three times in a row is down: a hash passes it over,
// and the lines that wait for it move to their next target.
//
// For each target, in lines,
//
//	accepted + moved in = sent + dropped + ambiguous + rejected + too long + moved out + queued
package relay
