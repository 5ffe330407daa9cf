package symtab

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func text(t *Table, enc []byte) string { return string(t.AppendText(nil, enc)) }

// TestRoundTrip checks that only trailing dots are lost.
func TestRoundTrip(t *testing.T) {
	tests := []struct{ in, want string }{
		{"", ""},
		{".", ""},
		{"...", ""},
		{"cart", "cart"},
		{"cart.items", "cart.items"},
		{"cart.items.", "cart.items"},
		{"cart.items...", "cart.items"},
		{".cart", ".cart"},
		{"..cart", "..cart"},
		{"cart..items", "cart..items"},
		{"..a...b..", "..a...b"},
		{"a b", "a b"},
		{"a,b.c$d.%e\tf", "a,b.c$d.%e\tf"},
		{"\x00\xff\x80.\n\r.é.\xc3", "\x00\xff\x80.\n\r.é.\xc3"},
		{"same.same.same", "same.same.same"},
		{strings.Repeat("x", 100_000), strings.Repeat("x", 100_000)},
		{strings.Repeat("y", bigToken-1), strings.Repeat("y", bigToken-1)},
		{strings.Repeat("z", bigToken), strings.Repeat("z", bigToken)},
		{strings.Repeat("a.", 99_999) + "a", strings.Repeat("a.", 99_999) + "a"},
		{strings.Repeat(".", 100_000) + "a", strings.Repeat(".", 100_000) + "a"},
	}
	for _, tt := range tests {
		tab := New(Options{})
		enc := tab.AppendEncode([]byte("before"), tt.in)
		if !bytes.HasPrefix(enc, []byte("before")) {
			t.Fatalf("AppendEncode(%.40q) lost what was in the buffer", tt.in)
		}
		enc = enc[len("before"):]
		if got := text(tab, enc); got != tt.want {
			t.Errorf("%.40q reads back as %.40q, want %.40q", tt.in, got, tt.want)
		}
		if !tab.EqualText(enc, tt.want) {
			t.Errorf("EqualText(encoding of %.40q, %.40q) = false", tt.in, tt.want)
		}
		for _, other := range []string{tt.want + "x", tt.want + ".x", "x" + tt.want, tt.want + "."} {
			if tab.EqualText(enc, other) {
				t.Errorf("EqualText(encoding of %.40q, %.40q) = true", tt.in, other)
			}
		}
		tail := append(slices.Clone(enc), "behind"...)
		if got := size(tail); got != len(enc) {
			t.Errorf("size(encoding of %.40q and more) = %d, want %d", tt.in, got, len(enc))
		}
		if got := text(tab, tail); got != tt.want {
			t.Errorf("%.40q in a larger buffer reads back as %.40q", tt.in, got)
		}
		tab.Release(enc)
		if n := tab.NumSymbols(); n != 0 {
			t.Errorf("%d symbols left after releasing %.40q", n, tt.in)
		}
	}
}

// TestEncodedNumbers issues symbols 1 to 16384 and looks at their varints.
func TestEncodedNumbers(t *testing.T) {
	tab := New(Options{})
	want := map[int]string{
		1: "\x01", 127: "\x7f", 128: "\x80\x01", 300: "\xac\x02", 16383: "\xff\x7f", 16384: "\x80\x80\x01",
	}
	for i := 1; i <= 16384; i++ {
		enc := tab.AppendEncode(nil, fmt.Sprintf("t%d", i))
		if w, ok := want[i]; ok && string(enc) != string(rune(len(w)))+w {
			t.Errorf("encoding of token number %d = % x, want the length and % x", i, enc, w)
		}
	}
	if n := tab.NumSymbols(); n != 16384 {
		t.Errorf("NumSymbols() = %d, want 16384", n)
	}
}

func TestEncodingLayout(t *testing.T) {
	tab := New(Options{})
	abc := tab.AppendEncode(nil, "a.b.a")
	if want := "\x03\x01\x02\x01"; string(abc) != want {
		t.Errorf("a.b.a encodes as % x, want % x", abc, want)
	}
	lit := tab.AppendLiteral(nil, "x.y")
	if want := "\x05\x00\x03x.y"; string(lit) != want {
		t.Errorf("literal x.y encodes as % x, want % x", lit, want)
	}
	if got, want := tab.AppendJoin(nil, abc, lit), "\x08\x01\x02\x01\x00\x03x.y"; string(got) != want {
		t.Errorf("joined: % x, want % x", got, want)
	}
	if got := tab.AppendLiteral(nil, ""); string(got) != "\x00" {
		t.Errorf("empty literal encodes as % x, want 00", got)
	}
	long := tab.AppendEncode([]byte("k"), strings.Repeat("a.", 200)+"a")
	if want := "k\xc9\x01" + strings.Repeat("\x01", 201); string(long) != want {
		t.Errorf("201 tokens encode as % x", long)
	}
}

// TestNumberReuse checks that a number is stable while held and reused before a
// new one is issued.
func TestNumberReuse(t *testing.T) {
	tab := New(Options{})
	number := func(token string) (Symbol, []byte) {
		enc := tab.AppendEncode(nil, token)
		for sym := range symbolsOf(enc) {
			return sym, enc
		}
		t.Fatalf("no symbol for %q", token)
		return 0, nil
	}
	a, encA := number("a")
	b, encB := number("b")
	c, encC := number("c")
	if a != 1 || b != 2 || c != 3 {
		t.Fatalf("first numbers: %d %d %d, want 1 2 3", a, b, c)
	}
	b2, encB2 := number("b")
	if b2 != b {
		t.Errorf("b has numbers %d and %d while held", b, b2)
	}
	tab.Release(encB)
	if b3, enc := number("b"); b3 != b {
		t.Errorf("b went from %d to %d while held once", b, b3)
	} else {
		tab.Release(enc)
	}
	tab.Release(encB2)
	if got := tab.Token(b); got != nil {
		t.Errorf("Token of a released symbol = %q, want nil", got)
	}
	if n := tab.NumSymbols(); n != 2 {
		t.Errorf("NumSymbols() = %d, want 2", n)
	}
	if d, _ := number("d"); d != b {
		t.Errorf("d got number %d, want the freed %d", d, b)
	}
	if e, _ := number("e"); e != 4 {
		t.Errorf("e got number %d, want the new 4", e)
	}
	tab.Release(encA)
	tab.Release(encC)
	x, _ := number("x")
	y, _ := number("y")
	z, _ := number("z")
	if got := []Symbol{min(x, y), max(x, y), z}; !slices.Equal(got, []Symbol{a, c, 5}) {
		t.Errorf("x, y, z got numbers %v, want the freed %d and %d, then 5", got, a, c)
	}
}

// TestNumberReuseAcrossPages frees numbers of several pages, some completely.
// TestLowestPageFirst frees a number in each of many pages: new tokens get the numbers of the
// lowest pages first, so that the highest can become empty.
func TestLowestPageFirst(t *testing.T) {
	tab := New(Options{})
	var enc []byte
	for i := range 130 * pageSize {
		if enc = tab.AppendEncode(enc[:0], strconv.Itoa(i)); i%(10*pageSize) == 0 {
			tab.Retain(enc)
		}
	}
	var freed []Symbol
	for i := 0; i < 130*pageSize; i += 10 * pageSize {
		enc = tab.AppendEncode(enc[:0], strconv.Itoa(i))
		for sym := range symbolsOf(enc) {
			freed = append(freed, sym)
		}
		for range 3 {
			tab.Release(enc)
		}
	}
	for i, want := range freed {
		for got := range symbolsOf(tab.AppendEncode(nil, fmt.Sprint("new", i))) {
			if got != want {
				t.Errorf("new token %d is number %d, want %d", i, got, want)
			}
		}
	}
	checkTable(t, tab)
}

// TestLengthsAroundVarints encodes names whose lengths need one more byte than the ones
// before.
func TestLengthsAroundVarints(t *testing.T) {
	tab := New(Options{})
	for _, at := range []int{0x80, 0x4000} {
		for n := at - 8; n < at+8; n++ {
			name := strings.Repeat("x", n)
			for how, enc := range map[string][]byte{
				"literal": tab.AppendLiteral([]byte("> "), name),
				"tokens":  tab.AppendEncode([]byte("> "), strings.Repeat(".", n-1)+"x"),
			} {
				want := name
				if how == "tokens" {
					want = strings.Repeat(".", n-1) + "x"
				}
				if got := text(tab, enc[2:]); got != want || size(enc[2:]) != len(enc)-2 || string(enc[:2]) != "> " {
					t.Errorf("%s of %d: %q in %d of %d bytes", how, n, got, size(enc[2:]), len(enc)-2)
				}
			}
		}
	}
}

func TestNumberReuseAcrossPages(t *testing.T) {
	const n = 10 * pageSize
	tab := New(Options{})
	encs := make([][]byte, n)
	for i := range encs {
		encs[i] = tab.AppendEncode(nil, fmt.Sprint("first", i))
	}
	top := n // symbols are 1 to n
	for i, enc := range encs {
		if i%(3*pageSize) != 0 {
			tab.Release(enc)
		}
	}
	for i := range encs {
		if i%(3*pageSize) != 0 {
			for sym := range symbolsOf(tab.AppendEncode(nil, fmt.Sprint("second", i))) {
				if int(sym) > top {
					t.Fatalf("number %d issued while %d numbers are free", sym, n-tab.NumSymbols()+1)
				}
			}
		}
	}
	if got := tab.NumSymbols(); got != n {
		t.Errorf("NumSymbols() = %d, want %d", got, n)
	}
}

// TestReferences counts holders of shared tokens.
func TestReferences(t *testing.T) {
	tab := New(Options{})
	one := tab.AppendEncode(nil, "a.b.a")
	two := tab.AppendEncode(nil, "b.c")
	joined := tab.AppendJoin(nil, one, two, tab.AppendLiteral(nil, "x"))
	tab.Retain(joined)
	steps := []struct {
		release []byte
		left    int
		text    string // of joined
	}{
		{one, 3, "a.b.a.b.c.x"},
		{two, 3, "a.b.a.b.c.x"},
		{joined, 0, ""},
	}
	for i, s := range steps {
		tab.Release(s.release)
		if n := tab.NumSymbols(); n != s.left {
			t.Errorf("step %d: NumSymbols() = %d, want %d", i, n, s.left)
		}
		if got := text(tab, joined); s.text != "" && got != s.text {
			t.Errorf("step %d: joined name reads %q, want %q", i, got, s.text)
		}
	}
}

func TestJoin(t *testing.T) {
	tab := New(Options{})
	tests := []struct {
		parts []string
		want  string
	}{
		{nil, ""},
		{[]string{""}, ""},
		{[]string{"", "", ""}, ""},
		{[]string{"", "c.d"}, "c.d"},
		{[]string{"a.b", ""}, "a.b"},
		{[]string{"a.b", "c.d"}, "a.b.c.d"},
		{[]string{"a", "", "b", "..", "c"}, "a.b.c"},
		{[]string{"a", "=x.y", "b"}, "a.x.y.b"},
		{[]string{"=", "=x", "="}, "x"},
		{[]string{strings.Repeat("long.", 50), "b"}, strings.Repeat("long.", 50) + "b"},
	}
	for _, tt := range tests {
		var parts [][]byte
		for _, p := range tt.parts {
			parts = append(parts, encodeMixed(tab, p))
		}
		got := tab.AppendJoin([]byte("k"), parts...)
		if got[0] != 'k' || text(tab, got[1:]) != tt.want {
			t.Errorf("join of %q reads %q, want %q", tt.parts, text(tab, got[1:]), tt.want)
		}
		if size(got[1:]) != len(got)-1 {
			t.Errorf("join of %q takes %d bytes, its size is %d", tt.parts, len(got)-1, size(got[1:]))
		}
	}
}

// encodeMixed encodes parts separated by "|": parts with the prefix "=" as
// literal segments, the others as symbols.
func encodeMixed(tab *Table, s string) []byte {
	var parts [][]byte
	for piece := range strings.SplitSeq(s, "|") {
		if lit, ok := strings.CutPrefix(piece, "="); ok {
			parts = append(parts, tab.AppendLiteral(nil, lit))
		} else {
			parts = append(parts, tab.AppendEncode(nil, piece))
		}
	}
	return tab.AppendJoin(nil, parts...)
}

func TestSegments(t *testing.T) {
	tab := New(Options{})
	enc := encodeMixed(tab, "a.b|=x.y|a")
	type seg struct {
		sym     Symbol
		literal string
		text    string
	}
	var got []seg
	for c := tab.Segments(enc); c.Next(); {
		got = append(got, seg{c.Symbol(), string(c.Literal()), string(c.Text())})
	}
	want := []seg{{1, "", "a"}, {2, "", "b"}, {0, "x.y", "x.y"}, {1, "", "a"}}
	if !slices.Equal(got, want) {
		t.Errorf("segments of a.b|=x.y|a: %v, want %v", got, want)
	}
	if got := slices.Collect(symbolsOf(enc)); !slices.Equal(got, []Symbol{1, 2, 1}) {
		t.Errorf("symbols of a.b|=x.y|a: %v, want 1 2 1", got)
	}
	for sym := range symbolsOf(enc) {
		if sym != 1 {
			t.Errorf("Symbols went on after a break")
		}
		break
	}
}

// TestLiterals checks that literal segments leave no trace in the table.
func TestLiterals(t *testing.T) {
	tab := New(Options{})
	for _, s := range []string{"", "x", "a.b.c", ".", "a..", "\x00\xff", strings.Repeat("l", 100_000)} {
		enc := tab.AppendLiteral(nil, s)
		if got := text(tab, enc); got != s {
			t.Errorf("literal %.40q reads back as %.40q", s, got)
		}
		if !tab.EqualText(enc, s) || tab.EqualText(enc, s+"x") {
			t.Errorf("EqualText of literal %.40q is wrong", s)
		}
		tab.Release(enc)
	}
	if n, total := tab.NumSymbols(), tab.RecentTotal(); n != 0 || total != 0 {
		t.Errorf("literals made %d symbols and %d lookups", n, total)
	}
}

// TestMalformed feeds bytes that are no encoding to everything that reads one.
func TestMalformed(t *testing.T) {
	tab := New(Options{})
	tab.AppendEncode(nil, "a.b.c")
	for _, enc := range []string{
		"", "\x05", "\x80", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "\x02\x01\x80", "\x01\x00",
		"\x02\x00\x7f", "\x03\x00\x7fab", "\x06\xff\xff\xff\xff\x0f\x01", "\x06\x80\x80\x80\x80\x10\x01",
		"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x01", "\x03\x80\x80\x00", "\x02\xff\x7f",
	} {
		checkReaders(tab, []byte(enc))
	}
}

// checkReaders calls everything that reads an encoding and must not panic.
func checkReaders(tab *Table, enc []byte) {
	tab.AppendText(nil, enc)
	tab.EqualText(enc, "a.b.c.d")
	tab.AppendJoin(nil, enc, enc)
	for c := tab.Segments(enc); c.Next(); {
		tab.Token(c.Symbol())
		c.Text()
	}
	for range symbolsOf(enc) {
	}
	_ = enc[:size(enc)]
}

// TestNoNumbersLeft runs out of symbols: further tokens become literals.
func TestNoNumbersLeft(t *testing.T) {
	tab := New(Options{})
	tab.tokens.maxPages = 1
	for i := 1; i < pageSize; i++ {
		tab.AppendEncode(nil, fmt.Sprint(i))
	}
	enc := tab.AppendEncode(nil, "1.new.2")
	if got := text(tab, enc); got != "1.new.2" || tab.NumSymbols() != pageSize-1 {
		t.Errorf("1.new.2 reads back as %q with %d symbols", got, tab.NumSymbols())
	}
	if want := "\x07\x01\x00\x03new\x02"; string(enc) != want {
		t.Errorf("1.new.2 encodes as % x", enc)
	}
}

// TestPinnedCount lets a reference count saturate: the token stays.
func TestPinnedCount(t *testing.T) {
	tab := New(Options{})
	enc := tab.AppendEncode(nil, "a")
	tab.tokens.page(1).refs[1].Store(pinned - 1)
	tab.AppendEncode(nil, "a")
	tab.AppendEncode(nil, "a")
	for range 5 {
		tab.Release(enc)
	}
	if got := tab.tokens.page(1).refs[1].Load(); got != pinned {
		t.Errorf("count = %d, want it to stay at %d", got, uint32(pinned))
	}
	if got := text(tab, enc); got != "a" {
		t.Errorf("pinned token reads %q", got)
	}
}

// TestIndexIsNotTrusted makes the index return a wrong symbol, as happens for a
// token with the same hash or a number reused since it was read.
func TestIndexIsNotTrusted(t *testing.T) {
	tab := New(Options{})
	tab.AppendEncode(nil, "b") // symbol 1
	h := tab.Hash("a")
	tab.shards[shardOf(h)].insertLocked(uint32(h), 1)
	for range 2 {
		if enc := tab.AppendEncode(nil, "a"); !tab.EqualText(enc, "a") {
			t.Errorf("a reads back as %q", text(tab, enc))
		}
	}
	if got := tab.tokens.page(1).refs[1].Load(); got != 1 {
		t.Errorf("b has %d references, want 1", got)
	}
}

// TestChunkDirectoryIsGivenBack uses up several groups of chunks.
func TestChunkDirectoryIsGivenBack(t *testing.T) {
	const n = 3 * chunksPerGroup
	big := strings.Repeat("x", bigToken)
	for _, atOnce := range []bool{false, true} {
		tab := New(Options{})
		var encs [][]byte
		for i := range n {
			enc := tab.AppendEncode(nil, fmt.Sprint(big, i))
			if atOnce {
				encs = append(encs, enc)
			} else {
				tab.Release(enc)
			}
		}
		for _, enc := range encs {
			tab.Release(enc)
		}
		if chunks, groups := chunkCount(tab); chunks != 0 || groups > 1 {
			t.Errorf("all released at once %t: %d chunks in %d groups, want none in at most 1", atOnce, chunks, groups)
		}
		checkTable(t, tab)
	}
}

// TestEmptyTokenAtTheEndOfABlock: the offset of an empty token was 65536 if only its header
// fitted into a block, so its place named another chunk, and its readers waited forever.
func TestEmptyTokenAtTheEndOfABlock(t *testing.T) {
	for room := 1; room <= 8; room++ { // bytes left for its header and more
		for parity := range uint32(2) { // of the number of the chunk, whose lowest bit was set
			tab := New(Options{})
			k := &tab.tokens
			n := 0
			for ; k.arena.current == 0 || k.arena.current%2 != parity || blockSize-k.arena.filled > 100; n++ {
				tab.AppendEncode(nil, fmt.Sprintf("token%d", n))
			}
			header := len(appendHeader(nil, Symbol(n+1), 0))
			last := strings.Repeat("x", blockSize-k.arena.filled-header-room)
			tab.AppendEncode(nil, last)
			if left := blockSize - k.arena.filled; left != room {
				t.Fatalf("%d bytes left, want %d", left, room)
			}
			enc := tab.AppendEncode(nil, "token0..token1")
			at := place(k.whereOf(Symbol(n + 2)).Load())
			if _, ok := k.arena.bytes(at); !ok {
				t.Fatalf("%d bytes left: the empty token is in chunk %d, the last is %d", room, at.chunk(), k.arena.last)
			}
			if got := text(tab, enc); got != "token0..token1" {
				t.Errorf("%d bytes left: the text is %q", room, got)
			}
			checkTable(t, tab)
		}
	}
}
