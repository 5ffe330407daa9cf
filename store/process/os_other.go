//go:build !linux

package process

func readOS() osValues { return osValues{} }
