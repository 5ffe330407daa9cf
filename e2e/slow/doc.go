// Package slow loads the administration port with clients that read slowly or not at
// all.
package slow
