// Package relay runs fleets: daemons that relay lines to others by a hash.
package relay
