package hotrestart

import (
	"bytes"
	"testing"

	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/store"
)

func TestVersion(t *testing.T) {
	if v := Version(); available && v != "3.20" {
		t.Errorf("version %q: processes with another version cannot follow each other; say so in the release", v)
	}
}

func FuzzStats(f *testing.F) {
	var all []byte
	for _, h := range samples() {
		all = appendStat(all, &h)
	}
	f.Add(all)
	f.Add([]byte{0, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Add([]byte{7, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		var again []byte
		n := 0
		err := parseStats(b, func(h *store.ExportedStat) {
			n++
			again = appendStat(again, h)
		})
		if n > len(b) {
			t.Errorf("%d stats out of %d bytes", n, len(b))
		}
		if err != nil {
			return
		}
		// Stats that were read and written again read the same.
		var third []byte
		if err := parseStats(again, func(h *store.ExportedStat) { third = appendStat(third, h) }); err != nil || !bytes.Equal(again, third) {
			t.Errorf("%x\nreads as\n%x\nthen as\n%x, %v", b, again, third, err)
		}
	})
}

func FuzzParcels(f *testing.F) {
	for _, p := range parcels()[1:2] {
		f.Add(appendParcel(nil, &p))
	}
	f.Add([]byte{1, 'a', 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, b []byte) {
		var again []byte
		n := 0
		if err := parseParcels(b, func(p flush.Parcel) { n++; again = appendParcel(again, &p) }); n > len(b) || err != nil {
			return
		}
		var third []byte
		if err := parseParcels(again, func(p flush.Parcel) { third = appendParcel(third, &p) }); err != nil || !bytes.Equal(again, third) {
			t.Errorf("%x\nreads as\n%x\nthen as\n%x, %v", b, again, third, err)
		}
	})
}

// TestHeadLimits: a message is as large as the limits allow, and no larger.
func TestHeadLimits(t *testing.T) {
	for h, ok := range map[head]bool{
		{answerSocket, maxPayload, maxFiles, 1}: true, {answerSocket, maxPayload + 1, 0, 1}: false, {answerSocket, 0, maxFiles + 1, 1}: false,
	} {
		if got, err := parseHead(h.append(nil)); (err == nil) != ok || ok && got != h {
			t.Errorf("%+v reads as %+v, %v", h, got, err)
		}
	}
}

func FuzzHead(f *testing.F) {
	f.Add(head{askHello, 2, 0, 1}.append(nil))
	f.Add(head{answerSocket, maxPayload, maxFiles, 1}.append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := parseHead(b)
		if err == nil && (!bytes.Equal(h.append(nil), b) || h.length > maxPayload || h.files > maxFiles) {
			t.Errorf("%x reads as %+v", b, h)
		}
	})
}
