// Package relay runs fleets: daemons that relay lines to others, and to StatsD for
// Node.js.
package relay
