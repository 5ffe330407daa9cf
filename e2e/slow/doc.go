// Package slow loads the admin port with clients that read slowly or not at all.
package slow
