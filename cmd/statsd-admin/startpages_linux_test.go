package main

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"testing"
)

func TestCleanMappings(t *testing.T) {
	maps := `00400000-00e00000 r-xp 00000000 fe:01 12 /opt/a b/statsd-admin
00e00000-00f00000 r--p 00a00000 fe:01 12 /opt/a b/statsd-admin
00f00000-00f10000 rw-p 00b00000 fe:01 12 /opt/a b/statsd-admin
00f20000-00f30000 r-xp 00000000 fe:01 13 /opt/a b/statsd-admin (deleted)
c000000000-c000400000 rw-p 00000000 00:00 0 
7f0000000000-7f0000010000 r--p 00000000 fe:01 14 /lib/other
7ffc00000000-7ffc00002000 r-xp 00000000 00:00 0                          [vdso]
nonsense
00a-00b r-xp
00b-00a r-xp 0 0 0 /opt/a b/statsd-admin
`
	want := []mapping{{0x400000, 0xe00000}, {0xe00000, 0xf00000}}
	if got := cleanMappings([]byte(maps), "/opt/a b/statsd-admin"); !slices.Equal(got, want) {
		t.Errorf("got %x, want %x", got, want)
	}
}

// TestStartPagesAreDropped compares the pages of files before and after.
func TestStartPagesAreDropped(t *testing.T) {
	resident := func() int {
		b, err := os.ReadFile("/proc/self/status")
		if err != nil {
			t.Fatal(err)
		}
		m := regexp.MustCompile(`RssFile:\s+(\d+) kB`).FindSubmatch(b)
		if m == nil {
			t.Fatalf("no RssFile in\n%s", b)
		}
		n, _ := strconv.Atoi(string(m[1])) // digits
		return n
	}
	before := resident()
	dropStartPages()
	if after := resident(); after >= before {
		t.Errorf("%d KiB of files are resident after dropping pages, %d before", after, before)
	}
}
