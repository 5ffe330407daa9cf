package symtab

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// held is a name that a test holds.
type held struct {
	enc    []byte
	text   string
	tokens []string // those that are symbols
}

// TestModel runs random operations next to a map of reference counts.
func TestModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		tab := New(Options{Seed: rapid.Uint64Min(1).Draw(rt, "seed")})
		refs := map[string]int{}
		symbols := map[string]Symbol{}
		top := 0 // most tokens ever alive
		var names []held

		token := rapid.OneOf(
			rapid.SampledFrom([]string{"", "a", "b", "ab", "a b", "\xff"}),
			rapid.Map(rapid.IntRange(0, 2000), func(i int) string { return fmt.Sprint("t", i) }),
			rapid.Map(rapid.IntRange(0, 9), func(i int) string { return strings.Repeat(fmt.Sprint(i), 3000*(i+1)) }),
		)
		add := func(enc []byte, text string, tokens []string) {
			names = append(names, held{enc, text, tokens})
			i := 0
			for sym := range symbolsOf(enc) {
				tok := tokens[i]
				i++
				if refs[tok]++; refs[tok] == 1 {
					symbols[tok] = sym
				}
				if symbols[tok] != sym {
					rt.Fatalf("token %.20q has symbols %d and %d", tok, symbols[tok], sym)
				}
			}
			top = max(top, len(refs))
		}
		pick := func() int { return rapid.IntRange(0, len(names)-1).Draw(rt, "name") }
		rt.Repeat(map[string]func(*rapid.T){
			"encode": func(rt *rapid.T) {
				tokens := rapid.SliceOfN(token, 1, 5).Draw(rt, "tokens")
				name := strings.TrimRight(strings.Join(tokens, "."), ".")
				enc := tab.AppendEncodeBytes(nil, []byte(name+strings.Repeat(".", rapid.IntRange(0, 2).Draw(rt, "dots"))))
				if tokens = strings.Split(name, "."); name == "" {
					tokens = nil
				}
				add(enc, name, tokens)
			},
			"many": func(rt *rapid.T) {
				from := rapid.IntRange(0, 5000).Draw(rt, "from")
				for i := range 300 {
					tok := fmt.Sprintf("many_%d", from+i)
					add(tab.AppendEncode(nil, tok), tok, []string{tok})
				}
			},
			"literal": func(rt *rapid.T) {
				s := rapid.StringMatching(`[ab.]{0,6}`).Draw(rt, "text")
				add(tab.AppendLiteral(nil, s), s, nil)
			},
			"join": func(rt *rapid.T) {
				if len(names) == 0 {
					return
				}
				a, b := names[pick()], names[pick()]
				enc := tab.AppendJoin(nil, a.enc, b.enc)
				tab.Retain(enc)
				text := a.text + "." + b.text
				switch {
				case len(payload(a.enc)) == 0:
					text = b.text
				case len(payload(b.enc)) == 0:
					text = a.text
				}
				add(enc, text, slices.Concat(a.tokens, b.tokens))
			},
			"release": func(rt *rapid.T) {
				n := rapid.SampledFrom([]int{1, 1, 1, 200}).Draw(rt, "n")
				for range min(n, len(names)) {
					i := pick()
					h := names[i]
					names[i] = names[len(names)-1]
					names = names[:len(names)-1]
					tab.Release(h.enc)
					for _, tok := range h.tokens {
						if refs[tok]--; refs[tok] == 0 {
							delete(refs, tok)
						}
					}
				}
			},
			"equal": func(rt *rapid.T) {
				if len(names) == 0 {
					return
				}
				a, b := names[pick()], names[pick()]
				if got := tab.EqualText(a.enc, b.text); got != (a.text == b.text) {
					rt.Errorf("EqualText(%.60q, %.60q) = %t", a.text, b.text, got)
				}
			},
			"": func(rt *rapid.T) {
				if got := tab.NumSymbols(); got != len(refs) {
					rt.Fatalf("NumSymbols() = %d, want %d", got, len(refs))
				}
				for _, h := range names {
					if got := text(tab, h.enc); got != h.text {
						rt.Fatalf("%.60q reads %.60q", h.text, got)
					}
				}
				for tok := range refs {
					if sym := symbols[tok]; int(sym) > top || string(tab.Token(sym)) != tok {
						rt.Fatalf("symbol %d of %.20q reads %.20q; %d were alive at most", sym, tok, tab.Token(sym), top)
					}
				}
			},
		})
		checkTable(t, tab)
		for _, h := range names {
			tab.Release(h.enc)
		}
		if n := tab.NumSymbols(); n != 0 {
			rt.Errorf("%d symbols left at the end", n)
		}
		checkTable(t, tab)
	})
}

// TestConcurrent encodes, reads and releases names of a small vocabulary, so
// tokens come and go constantly, while other goroutines read encodings that
// have been released.
func TestConcurrent(t *testing.T) {
	const goroutines, rounds = 6, 4000
	tab := New(Options{})
	vocabulary := make([]string, 60)
	for i := range vocabulary {
		vocabulary[i] = strings.Repeat(string(rune('A'+i)), 1+i*i*i/100)
	}
	vocabulary = append(vocabulary, strings.Repeat("big", bigToken))
	var stale [32]atomic.Pointer[[]byte]
	var writers, readers sync.WaitGroup
	var done atomic.Bool
	for g := range goroutines {
		writers.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(g), 1))
			var mine []held
			for range rounds {
				tokens := make([]string, 1+rnd.IntN(4))
				for i := range tokens {
					tokens[i] = vocabulary[rnd.IntN(len(vocabulary))]
				}
				h := held{text: strings.Join(tokens, ".")}
				h.enc = tab.AppendEncode(nil, h.text)
				stale[rnd.IntN(len(stale))].Store(&h.enc)
				mine = append(mine, h)
				if len(mine) > rnd.IntN(8) {
					i := rnd.IntN(len(mine))
					h := mine[i]
					if !tab.EqualText(h.enc, h.text) || text(tab, h.enc) != h.text {
						t.Errorf("%.40q reads %.40q while held", h.text, text(tab, h.enc))
					}
					mine = slices.Delete(mine, i, i+1)
					tab.Release(h.enc)
				}
			}
			for _, h := range mine {
				tab.Release(h.enc)
			}
		})
	}
	for range 2 {
		readers.Go(func() {
			var buf []byte
			for i := 0; !done.Load(); i++ {
				a, b := stale[i%len(stale)].Load(), stale[i*7%len(stale)].Load()
				if a == nil || b == nil {
					continue
				}
				buf = tab.AppendText(buf[:0], *a)
				tab.EqualText(*a, view(buf))
				for sym := range symbolsOf(*a) {
					// The bytes of a token are never a mix of two.
					if tok := tab.Token(sym); len(tok) > 0 && len(tok) < bigToken && strings.Trim(string(tok), string(tok[:1])) != "" {
						t.Errorf("symbol %d reads %.40q", sym, tok)
					}
				}
			}
		})
	}
	writers.Wait()
	done.Store(true)
	readers.Wait()
	if n := tab.NumSymbols(); n != 0 {
		t.Errorf("%d symbols left", n)
	}
	checkTable(t, tab)
	if chunks, _ := chunkCount(tab); chunks > 1 {
		t.Errorf("%d chunks left for no tokens", chunks)
	}
	if tab.tokens.arena.last < 20 {
		t.Errorf("only %d chunks were used: the test does not reach the moving of tokens", tab.tokens.arena.last)
	}
}

// TestOneTokenContended lets goroutines create and remove the same token.
func TestOneTokenContended(t *testing.T) {
	tab := New(Options{})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			var enc []byte
			for range 10_000 {
				enc = tab.AppendEncode(enc[:0], "x")
				if got := tab.Token(1); string(got) != "x" {
					t.Errorf("the only token has another number than 1; that reads %q", got)
					return
				}
				tab.Release(enc)
			}
		})
	}
	wg.Wait()
	if n := tab.NumSymbols(); n != 0 {
		t.Errorf("%d symbols left", n)
	}
	checkTable(t, tab)
}

// TestNumberContended lets goroutines pass one number between several tokens.
// With more scheduler slots than cores, the operating system interrupts them at
// any instruction.
func TestNumberContended(t *testing.T) {
	const goroutines, rounds = 16, 100_000
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(goroutines))
	tab := New(Options{})
	names := []string{"x", "y", "z"}
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(g), 2))
			var enc []byte
			for range rounds {
				name := names[rnd.IntN(len(names))]
				enc = tab.AppendEncode(enc[:0], name)
				if !tab.EqualText(enc, name) {
					t.Errorf("%q reads %q while held", name, text(tab, enc))
				}
				tab.Release(enc)
			}
		})
	}
	wg.Wait()
	if n := tab.NumSymbols(); n != 0 {
		t.Errorf("%d symbols left", n)
	}
	checkTable(t, tab)
}

// TestMemoryIsGivenBack floods the table with tokens and releases all but one
// in a thousand, then those too.
func TestMemoryIsGivenBack(t *testing.T) {
	const n, rounds = 60_000, 3
	tab := New(Options{})
	var kept []held
	for round := range rounds {
		all := make([]held, n)
		for i := range all {
			name := fmt.Sprintf("round_%d_token_%06d", round, i)
			all[i] = held{enc: tab.AppendEncode(nil, name), text: name}
		}
		for i, h := range all {
			if i%1000 == 0 {
				kept = append(kept, h)
			} else {
				tab.Release(h.enc)
			}
		}
		checkTable(t, tab)
		for _, h := range kept {
			if !tab.EqualText(h.enc, h.text) {
				t.Fatalf("%q reads %q after the others went", h.text, text(tab, h.enc))
			}
		}
	}
	limits := func(chunks, slots, pages int) {
		t.Helper()
		gotChunks, groups := chunkCount(tab)
		if gotChunks > chunks || groups > 1 {
			t.Errorf("%d chunks in %d groups for %d tokens, want at most %d in 1", gotChunks, groups, tab.NumSymbols(), chunks)
		}
		if got := slotCount(tab); got > slots {
			t.Errorf("%d index slots for %d tokens, want at most %d", got, tab.NumSymbols(), slots)
		}
		if got := tab.tokens.resident; got > pages {
			t.Errorf("%d pages for %d tokens, want at most %d", got, tab.NumSymbols(), pages)
		}
	}
	limits(2, 4*len(kept)+shardCount*8*minSlots, n/pageSize+3)
	for _, h := range kept {
		tab.Release(h.enc)
	}
	checkTable(t, tab)
	limits(1, shardCount*8*minSlots, 2)
}

// TestReadingTakesNoLock uses a table whose locks are all taken.
func TestReadingTakesNoLock(t *testing.T) {
	tab := New(Options{})
	enc := tab.AppendEncode(nil, "a.b.c")
	for i := range tab.shards {
		tab.shards[i].mu.Lock()
	}
	tab.tokens.mu.Lock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		again := tab.AppendEncode(nil, "a.b.c")
		lit := tab.AppendLiteral(nil, "new.text")
		joined := tab.AppendJoin(nil, enc, lit)
		tab.Retain(joined)
		checkReaders(tab, joined)
		tab.Release(joined)
		tab.Release(again)
		tab.NumSymbols()
		tab.CountLookup("x")
	}()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		t.Fatal("something takes a lock")
	}
}

// FuzzEncode checks that any name survives the round trip and leaves no symbols
// after its release, and that reading arbitrary bytes as an encoding does not
// panic.
func FuzzEncode(f *testing.F) {
	for _, s := range []string{"", ".", "...", "a", "a.b", ".a", "a..b", "a.b.", "\x00\xff. ,$%", strings.Repeat("ab.", 100)} {
		f.Add(s, s)
	}
	f.Add("\x05\x00\x03x.y", "\x02\x80\x01")
	f.Fuzz(func(t *testing.T, a, b string) {
		tab := New(Options{})
		encA, encB := tab.AppendEncode(nil, a), tab.AppendEncodeBytes(nil, []byte(b))
		textA, textB := strings.TrimRight(a, "."), strings.TrimRight(b, ".")
		if got := text(tab, encA); got != textA {
			t.Errorf("%q reads back as %q", a, got)
		}
		if got := tab.EqualText(encA, textB); got != (textA == textB) {
			t.Errorf("EqualText(%q, %q) = %t", a, b, got)
		}
		var tokensA, tokensB []string
		if textA != "" {
			tokensA = strings.Split(textA, ".")
		}
		if textB != "" {
			tokensB = strings.Split(textB, ".")
		}
		distinct := map[string]bool{}
		for _, tok := range slices.Concat(tokensA, tokensB) {
			distinct[tok] = true
		}
		if got := tab.NumSymbols(); got != len(distinct) {
			t.Errorf("NumSymbols() = %d, want %d", got, len(distinct))
		}
		litA := tab.AppendLiteral(nil, textA)
		if !tab.EqualText(litA, textA) {
			t.Errorf("%q as a literal differs from the same text", textA)
		}
		checkReaders(tab, []byte(a))
		tab.Release(encB)
		tab.Release(encA)
		if n := tab.NumSymbols(); n != 0 {
			t.Errorf("%d symbols left", n)
		}
		checkTable(t, tab)
	})
}
