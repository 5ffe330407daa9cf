package statsd

import (
	"encoding/binary"
	"slices"
	"testing"
)

// FuzzFrames reads a stream of frames in pieces of any size. Its stats equal what the
// same payloads give as packets, up to the first frame that is too long.
func FuzzFrames(f *testing.F) {
	frame := func(p string) string { return string(binary.LittleEndian.AppendUint32(nil, uint32(len(p)))) + p }
	for _, s := range []string{
		frame("a:1|c\nb:2|g") + frame("") + frame("a:1|c"), frame("a:1|c")[:7], "a:1|c\nb:1|c\n",
		frame("a:1|c") + "\xff\xff\xff\xff" + frame("a:1|c"), frame("a:1|c") + "\x01\x20\x00\x00" + frame("a:1|c"),
	} {
		f.Add([]byte(s), byte(1))
		f.Add([]byte(s), byte(5))
	}
	want, got := newFuzzRig(f, modelConfig()), newFuzzRig(f, modelConfig())
	f.Fuzz(func(t *testing.T, b []byte, step byte) {
		want.reset(t)
		got.reset(t)
		rest, tooLong := b, false
		for len(rest) >= lengthPrefix {
			n := binary.LittleEndian.Uint32(rest)
			if tooLong = n > defaultPacketBytes; tooLong || uint64(n) > uint64(len(rest)-lengthPrefix) {
				break
			}
			if n > 0 {
				want.send(string(rest[lengthPrefix : lengthPrefix+n]))
			}
			rest = rest[lengthPrefix+n:]
		}
		st := &stream{server: got.Server, l: got.l, worker: got.streamWorkers[0], from: source{name: "tester"}, buf: make([]byte, streamBuffer)}
		why := ""
		for piece := range slices.Chunk(b, int(step)+1) {
			for len(piece) > 0 && why == "" {
				n := copy(st.buf[st.n:], piece)
				if n == 0 {
					t.Fatalf("no room in a buffer of %d bytes", len(st.buf))
				}
				piece, st.n = piece[n:], st.n+n
				why = st.takeFrames(n)
			}
		}
		if (why != "") != tooLong || len(st.buf) > streamBuffer+defaultPacketBytes+lengthPrefix {
			t.Errorf("ends with %q and a buffer of %d bytes; a frame is too long: %t", why, len(st.buf), tooLong)
		}
		if g, w := got.stats(), want.stats(); !slices.Equal(g, w) {
			t.Errorf("%q in pieces of %d bytes:\n%q\nas packets:\n%q", b, int(step)+1, g, w)
		}
	})
}
