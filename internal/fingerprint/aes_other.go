//go:build !amd64 || purego

package fingerprint

func hasAES() bool { return false }

func aes(*[9][16]byte, string) (lo, hi uint64) { return 0, 0 }

func find(m *Map, keys *Keys, salt *Salt, text string) (value int64) {
	return findPortable(m, keys, salt, text)
}
