//go:build linux

package hotrestart

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/internal/descriptors"
	"github.com/statsd-admin/statsd-admin/store"
)

// newPair returns the two ends of a link.
func newPair(t *testing.T) (a, b *link) {
	t.Helper()
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: filepath.Join(t.TempDir(), "s")})
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	dialled, err := net.DialUnix("unix", nil, ln.Addr().(*net.UnixAddr))
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := ln.AcceptUnix()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dialled.Close(); accepted.Close() })
	return &link{conn: dialled, timeout: time.Minute}, &link{conn: accepted, timeout: time.Minute}
}

// nulls returns n open files.
func nulls(t *testing.T, n int) []*os.File {
	t.Helper()
	all := make([]*os.File, n)
	for i := range all {
		var err error
		if all[i], err = os.Open(os.DevNull); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { closeAll(all) })
	return all
}

// TestLargestMessage sends as much as the limits allow, then more.
func TestLargestMessage(t *testing.T) {
	a, b := newPair(t)
	payload, files := bytes.Repeat([]byte("0123456789abcde"), maxPayload/15+1)[:maxPayload], nulls(t, maxFiles+1)
	failed := make(chan error, 1)
	go func() { failed <- a.send(answerSocket, payload, files[:maxFiles]...) }()
	m, err := b.receive(time.Minute)
	if err != nil || !bytes.Equal(m.payload, payload) || len(m.files) != maxFiles {
		t.Errorf("%d bytes and %d files, %v", len(m.payload), len(m.files), err)
	}
	m.close()
	if err := <-failed; err != nil {
		t.Error(err)
	}
	for _, tt := range []struct {
		payload []byte
		files   []*os.File
	}{
		{append(payload, 0), nil},
		{nil, files},
	} {
		if err := a.send(answerSocket, tt.payload, tt.files...); !errors.Is(err, errMalformed) {
			t.Errorf("%d bytes and %d files: %v", len(tt.payload), len(tt.files), err)
		}
	}
	// Nothing of them was sent.
	if err := a.send(answerDone, []byte("next")); err != nil {
		t.Fatal(err)
	}
	if m, err := b.receive(time.Minute); err != nil || m.kind != answerDone || string(m.payload) != "next" {
		t.Errorf("after messages that are too large: %+v, %v", m, err)
	}
}

// TestSendToClosedLink expects an error of a message with and without files.
func TestSendToClosedLink(t *testing.T) {
	a, b := newPair(t)
	if err := b.conn.Close(); err != nil {
		t.Fatal(err)
	}
	for _, files := range [][]*os.File{nil, nulls(t, 1)} {
		if err := a.send(answerSocket, []byte("x"), files...); !errors.Is(err, unix.EPIPE) {
			t.Errorf("%d files: %v", len(files), err)
		}
	}
}

// TestMessageInPieces receives a message byte by byte.
func TestMessageInPieces(t *testing.T) {
	a, b := newPair(t)
	want := "in many pieces"
	raw, err := a.conn.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for _, c := range append(head{answerSocket, uint32(len(want)), 0, 1}.append(nil), want...) {
			if _, err := a.conn.Write([]byte{c}); err != nil {
				return
			}
			// The other end has read it once nothing is queued.
			_ = raw.Control(func(fd uintptr) {
				for {
					if n, err := unix.IoctlGetInt(int(fd), unix.TIOCOUTQ); err != nil || n == 0 {
						return
					}
					runtime.Gosched()
				}
			})
		}
	}()
	if m, err := b.receive(time.Minute); err != nil || m.kind != answerSocket || string(m.payload) != want {
		t.Errorf("%+v, %v", m, err)
	}
}

// TestUnfinishedMessage: a message that has begun must arrive in time, also where its
// receiver waits without a limit.
func TestUnfinishedMessage(t *testing.T) {
	whole := append(head{answerDone, 3, 0, 1}.append(nil), "abc"...)
	for _, part := range []int{1, headBytes - 1, headBytes, len(whole) - 1} {
		t.Run(fmt.Sprint(part), func(t *testing.T) {
			t.Parallel()
			a, b := newPair(t)
			b.timeout = time.Millisecond
			if _, err := a.conn.Write(whole[:part]); err != nil {
				t.Fatal(err)
			}
			defer time.AfterFunc(10*time.Second, func() { _ = a.conn.Close() }).Stop() // or the test would hang
			if _, err := b.receive(0); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestNumbersOfMessages: a message that was sent twice is received once, and a gap in
// the numbers is noticed. Files that come with a message that is not used are closed.
func TestNumbersOfMessages(t *testing.T) {
	for _, tt := range []struct{ sent, want []string }{
		{[]string{"1", "1", "1", "2", "3", "3", "4"}, []string{"1", "2", "3", "4"}},
		{[]string{"1", "3"}, []string{"1", "number 3 after 1"}},
		{[]string{"2"}, []string{"number 2 after 0"}},
		{[]string{"1", "2", "1"}, []string{"1", "2", "number 1 after 2"}},
	} {
		a, b := newPair(t)
		files := nulls(t, 1)
		descriptors.Check(t, strings.Join(tt.sent, " "), func() {
			for _, n := range tt.sent {
				if err := a.write(append(head{answerSocket, 1, 1, uint32(n[0] - '0')}.append(nil), n...), files); err != nil {
					t.Fatal(err)
				}
			}
			b.received = 0
			for _, want := range tt.want {
				m, err := b.receive(time.Minute)
				got := string(m.payload)
				if err != nil {
					got = strings.TrimPrefix(err.Error(), errMalformed.Error()+": ")
				}
				m.close()
				if got != want {
					t.Errorf("%v: %s, want %s", tt.sent, got, want)
				}
			}
		})
	}
}

// TestFilesOfMessage sends other files than a message announces: it is refused, and
// keeps none of them open.
func TestFilesOfMessage(t *testing.T) {
	for _, tt := range []struct {
		name      string
		announced uint32
		sent      int
		want      string
	}{
		{"fewer", 2, 1, "1 files, 2 announced"},
		{"more", 1, 2, "2 files, 1 announced"},
		{"none announced", 0, 1, "1 files, 0 announced"},
		{"more than fit", maxFiles, maxFiles + 8, "its files did not arrive"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, b := newPair(t)
			files := nulls(t, tt.sent)
			number := uint32(0)
			descriptors.Check(t, tt.name, func() {
				number++
				if err := a.write(head{answerSocket, 0, tt.announced, number}.append(nil), files); err != nil {
					t.Fatal(err)
				}
				b.received = number - 1
				m, err := b.receive(time.Minute)
				if !errors.Is(err, errMalformed) || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "%!") {
					t.Errorf("got %v", err)
				}
				if m.files != nil {
					t.Error("files come with an error")
				}
			})
		})
	}
}

// TestHeadOfAnotherProgram: the error says which versions met.
func TestHeadOfAnotherProgram(t *testing.T) {
	good := head{askHello, 0, 0, 1}.append(nil)
	changed := func(at int) []byte {
		b := bytes.Clone(good)
		b[at]++
		return b
	}
	for _, tt := range []struct {
		name string
		head []byte
		want string
	}{
		{"no magic", changed(0), "malformed message: no head"},
		{"short", good[:headBytes-1], "malformed message: no head"},
		{"newer", changed(5), "the other process uses protocol version 4, this one 3"},
	} {
		if h, err := parseHead(tt.head); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %+v, %v", tt.name, h, err)
		}
	}
	for k, want := range map[kind]kind{askHello: 1, tellAck: 9, answerRefused: 109, answerParcels: 116} {
		if k != want {
			t.Errorf("a kind of message has number %d, in other programs with protocol %d it has %d", k, protocol, want)
		}
	}
}

// TestMalformedPayloads: what cannot be read ends as an error, and a reader that has
// failed returns zeros.
func TestMalformedPayloads(t *testing.T) {
	r := reader{b: []byte{0x80}}
	if n, s := r.number(), r.text(); n != 0 || s != "" || r.done() == nil {
		t.Errorf("an unfinished number reads as %d, %q", n, s)
	}
	many := func(n int) []byte {
		h := store.ExportedStat{Name: "a"}
		b := appendStat(nil, &h)[:3] // marks and name
		b = binary.AppendUvarint(b, uint64(n))
		for range n {
			b = appendText(appendText(b, ""), "")
		}
		return append(b, 0, 0, 0)
	}
	for _, tt := range []struct {
		name string
		b    []byte
		ok   bool
	}{
		{"as many tags as there may be", many(maxTags), true},
		{"one tag more", many(maxTags + 1), false},
		{"an unknown mark", []byte{marks + 1, 0, 0, 0, 0, 0}, false},
	} {
		n := 0
		err := parseStats(tt.b, func(*store.ExportedStat) { n++ })
		if (err == nil) != tt.ok || tt.ok && n != 1 {
			t.Errorf("%s: %d stats, %v", tt.name, n, err)
		}
	}
	for _, tt := range []struct {
		shard, age, metrics uint64
		ok                  bool
	}{
		{1<<31 - 1, 1<<63 - 1, 1<<31 - 1, true}, {1 << 31, 0, 0, false}, {0, 1 << 63, 0, false}, {0, 0, 1 << 31, false},
	} {
		b := []byte{0, 0}
		for _, n := range []uint64{tt.shard, tt.age, tt.metrics, 0, 0} {
			b = binary.AppendUvarint(b, n)
		}
		var got []flush.Parcel
		err := parseParcels(b, func(p flush.Parcel) { got = append(got, p) })
		if (err == nil) != tt.ok || tt.ok && (len(got) != 1 || got[0].Shard != int(tt.shard) || got[0].Age != time.Duration(tt.age) || got[0].Metrics != int(tt.metrics)) {
			t.Errorf("%+v: %+v, %v", tt, got, err)
		}
	}
}

// TestQuestionAfterUnknownBatch: a successor that claims to have a batch that was not sent,
// or an earlier one than before, is refused.
func TestQuestionAfterUnknownBatch(t *testing.T) {
	for _, tt := range []struct {
		applied uint64
		ok      bool
	}{
		{3, false}, {4, true}, {5, true}, {6, false},
	} {
		a, b := newPair(t)
		p := &Parent{link: a, batch: 5, acked: 4}
		process := newFake()
		err := p.answer(a, &message{kind: askUsage, payload: binary.AppendUvarint(nil, tt.applied)}, process)
		if (err == nil) != tt.ok || !tt.ok && !errors.Is(err, errMalformed) {
			t.Errorf("batch %d: %v", tt.applied, err)
		}
		if did := process.done(); (did != "") != (tt.applied == 5) {
			t.Errorf("batch %d: the process did %q", tt.applied, did)
		}
		b.conn.Close()
	}
}

// TestAnswerWithFiles: files that come with an answer that has none, or that are not
// wanted, are closed.
func TestAnswerWithFiles(t *testing.T) {
	done := binary.AppendUvarint(nil, 0)
	done = Usage{}.append(done)
	conn := appendText(nil, "127.0.0.1:1")
	for _, tt := range []struct {
		name    string
		kind    kind
		payload []byte
		to      Successor
		ok      bool
	}{
		{"done", answerDone, done, Successor{}, true},
		{"connection", answerConnection, conn, Successor{}, true},
		{"stats", answerStats, nil, Successor{Stat: func(*store.ExportedStat) {}}, true},
		{"socket", answerSocket, conn, Successor{}, false},
		{"malformed connection", answerConnection, []byte{9}, Successor{}, false},
	} {
		a, _ := newPair(t)
		c := &Child{cfg: Config{}.withDefaults(), to: tt.to, link: a}
		descriptors.Check(t, tt.name, func() {
			f, err := os.Open(os.DevNull)
			if err != nil {
				t.Fatal(err)
			}
			m := message{kind: tt.kind, payload: tt.payload, files: []*os.File{f}}
			_, err = c.take(&m, askStats, nil)
			if (err == nil) != tt.ok {
				t.Errorf("%s: %v", tt.name, err)
			}
			if err != nil {
				m.close() // as ask does
			}
		})
	}
}

// TestDefaultConfig: sockets belong to their user alone, and a silent process is left
// after ten seconds.
func TestDefaultConfig(t *testing.T) {
	if c := (Config{}).withDefaults(); c.Mode != 0o600 || c.Timeout != 10*time.Second || c.Logger == nil {
		t.Errorf("%+v", c)
	}
}

// TestReasonIsLogged: the running server says why it left a successor.
func TestReasonIsLogged(t *testing.T) {
	w := newWorld(t)
	conn := w.connect()
	if _, err := conn.Write(head{askStats, 1, 0, 1}.append(nil)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write([]byte{0}); err != nil {
		t.Fatal(err)
	}
	_, _ = conn.Read(make([]byte, 1)) // until it is closed
	w.logMu.Lock()
	defer w.logMu.Unlock()
	if text := w.log.String(); !strings.Contains(text, "hot restart: successor") || !strings.Contains(text, "no greeting") {
		t.Errorf("log: %q", text)
	}
}

// TestTruncatedMessage: the end of a connection between messages is its end, and within
// one, wherever it is, the error says so.
func TestTruncatedMessage(t *testing.T) {
	whole := append(head{answerDone, 9, 0, 1}.append(nil), "123456789"...)
	for n := range whole {
		a, b := newPair(t)
		_, _ = a.conn.Write(whole[:n])
		_ = a.conn.Close()
		_, err := b.receive(time.Minute)
		if within := strings.Contains(fmt.Sprint(err), "in the middle of a message"); !errors.Is(err, errEnd) || within != (n > 0) {
			t.Errorf("after %d of %d bytes: %v", n, len(whole), err)
		}
	}
}

// TestRunEndsBesideASilentSuccessor: the end of the context ends Run, although a
// successor says nothing, long before its time is up.
func TestRunEndsBesideASilentSuccessor(t *testing.T) {
	w := newPatientWorld(t, time.Hour)
	w.dial(Successor{})
	idle, err := net.DialUnix("unix", nil, w.cfg.address(w.cfg.Epoch))
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	w.stop()
	if _, err := idle.Read(make([]byte, 1)); err == nil {
		t.Error("the successor is answered")
	}
}

// TestAwaitEnd: a configuration without a time limit waits for the default one, until the
// parent has closed its sockets; without a parent it does not wait.
func TestAwaitEnd(t *testing.T) {
	cfg := Config{Path: filepath.Join(t.TempDir(), "hot")}
	next := cfg
	next.Epoch++
	AwaitEnd(next)
	ln, err := net.ListenUnix("unix", cfg.address(0))
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		AwaitEnd(next)
	}()
	for range 3 {
		c, err := ln.AcceptUnix() // it asks again and again
		if err != nil {
			t.Fatal(err)
		}
		_ = c.Close()
	}
	select {
	case <-ended:
		t.Error("it does not wait for the end")
	default:
	}
	_ = ln.Close()
	<-ended
}
