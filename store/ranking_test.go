package store

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/store/tags"
)

// rankingOf returns the ranking of counters, and of all other scalars, that x has after
// a question.
func rankingOf(t *testing.T, x *Explorer, q Explore) *ranking {
	t.Helper()
	if _, err := x.Explore(q); err != nil {
		t.Fatal(err)
	}
	return &x.names[Scalars]
}

// TestRankingFindsPositions compares each search with a walk over all keys.
func TestRankingFindsPositions(t *testing.T) {
	st := New(Options{})
	for i := range 1500 {
		st.Root().Counter(fmt.Sprintf("%c%d.%d", 'a'+i%3, i/3%20, i))
	}
	st.Root().Counter("b7") // also the first part of others
	r := rankingOf(t, st.NewExplorer(), Explore{})
	var keys [][]byte
	for i := range r.size() {
		keys = append(keys, bytes.Clone(r.keyAt(i)))
	}
	if len(keys) != 1501 || !slices.IsSortedFunc(keys, bytes.Compare) {
		t.Fatalf("%d keys, or not in order", len(keys))
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		of := random.IntN(len(keys))
		prefix := keys[of][:random.IntN(len(keys[of]))]
		switch random.IntN(8) {
		case 0:
			prefix = []byte("c")[:random.IntN(2)]
		case 1:
			prefix = []byte("zz")
		case 2:
			prefix = []byte("A")
		case 3:
			prefix = keys[of]
		}
		has := func(i int) bool { return bytes.HasPrefix(keys[i], prefix) }
		from := random.IntN(len(keys) + 1)
		within := span{from, from + random.IntN(len(keys)+1-from)}
		got := r.find(prefix, within)
		want := span{within.from, within.from}
		for want.from < within.to && bytes.Compare(keys[want.from], prefix) < 0 {
			want.from++
		}
		for want.to = want.from; want.to < within.to && has(want.to); {
			want.to++
		}
		if got != want {
			t.Fatalf("prefix %q within %v: found %v, want %v", prefix, within, got, want)
		}
	}
}

// TestRankingSumsUp compares the sums over spans with sums over their stats, whose times,
// sizes and rates differ, while stats end and are created.
func TestRankingSumsUp(t *testing.T) {
	now := time.UnixMilli(1_000_000)
	st := New(Options{Now: func() time.Time { return now }})
	net := st.ScopeWith("", ScopeOptions{Network: true})
	x := st.NewExplorer()
	random := rand.New(rand.NewPCG(5, 6))
	most := 0
	for round := range 12 {
		for range random.IntN([...]int{900, 20}[round%2]) {
			net.Counter(fmt.Sprint("n", random.IntN(5000)))
			if random.IntN(40) == 0 {
				now = now.Add(time.Second)
			}
		}
		now = now.Add(time.Minute)
		if round%3 == 2 {
			st.RemoveNetwork(func(string) bool { return random.IntN(3) == 0 })
		}
		rates := map[uint64]float64{}
		v := st.View()
		for c := v.ByName(Scalars); c.Next(); {
			if random.IntN(3) == 0 {
				rates[c.Ref()] = float64(random.IntN(100))
			}
		}
		r := rankingOf(t, x, Explore{Rates: func(yield func(uint64, float64) bool) {
			for ref, rate := range rates {
				if !yield(ref, rate) {
					return
				}
			}
		}})
		most = max(most, len(r.chunks))
		if len(r.slots) > 2*most {
			t.Errorf("%d slots for %d chunks", len(r.slots), most)
		}
		all := slices.Concat(r.chunks...)
		if r.size() != len(all) {
			t.Fatalf("%d positions for %d stats", r.size(), len(all))
		}
		for i, one := range all {
			if c, at := r.place(one); c == nil || c.ids[at] != one || i%100 == 0 && r.chunks[slices.Index(r.sums, c)][at] != one {
				t.Fatalf("stat %d has no place", one)
			}
		}
		for _, c := range r.sums {
			for k := range c.runs {
				from, to := c.run(k)
				if n := to - from; n >= 2*runLength || n < runLength && len(c.runs) > 1 || k == len(c.runs)-1 && to != len(c.ids) {
					t.Fatalf("round %d: run %d of %d ends at %d of %d and has %d stats", round, k, len(c.runs), to, len(c.ids), n)
				}
			}
		}
		for range 40 {
			from := random.IntN(len(all) + 1)
			s := span{from, from + random.IntN(len(all)+1-from)}
			if random.IntN(4) == 0 {
				n := r.chunkAt(min(from, len(all)-1))
				s.from, s.to = r.sums[n].run(random.IntN(len(r.sums[n].runs)))
				s.from, s.to = s.from+r.starts[n], s.to+r.starts[n]
			}
			since := now.Add(-time.Duration(random.IntN(400)) * time.Second).UnixMilli()
			var got, want tally
			r.setSince(since)
			r.addTo(x, s, &got)
			for by, want := range map[By]float64{ByNew: float64(got.fresh), ByRate: got.rate, ByBytes: float64(got.bytes)} {
				if w := r.weigh(x, s, by); w != want {
					t.Fatalf("round %d, span %v: the weight for order %d is %v, want %v", round, s, by, w, want)
				}
			}
			for _, one := range all[s.from:s.to] {
				b, i := st.at(one)
				at := b.birth(i).at
				if at >= since {
					want.fresh++
				}
				if want.series++; want.series == 1 {
					want.oldest, want.newest = at, at
				}
				want.oldest, want.newest = min(want.oldest, at), max(want.newest, at)
				want.bytes += b.sizeOf(i)
				want.rate += rates[b.ref(i)]
			}
			if got != want {
				t.Fatalf("round %d, span %v: %+v, want %+v", round, s, got, want)
			}
		}
		v.Close()
	}
	r := &x.names[Scalars]
	for _, one := range []id{math.MaxUint32, id(len(r.places)), makeID(0, 1000)} {
		if c, _ := r.place(one); c != nil {
			t.Errorf("stat %d, which is not there, has a place", one)
		}
	}
}

// TestRankingKeepsSumsOfChunks: only the sums of chunks that were replaced are made again.
func TestRankingKeepsSumsOfChunks(t *testing.T) {
	st := New(Options{})
	for i := range 4000 {
		st.Root().Counter(fmt.Sprintf("c%04d", i))
	}
	x := st.NewExplorer()
	r := rankingOf(t, x, Explore{})
	before := slices.Clone(r.sums)
	if r = rankingOf(t, x, Explore{}); !slices.Equal(r.sums, before) {
		t.Error("the sums were made again although nothing changed")
	}
	st.Root().Counter("c2000x")
	r = rankingOf(t, x, Explore{})
	kept := 0
	for _, c := range r.sums {
		if slices.Contains(before, c) {
			kept++
		}
	}
	if kept != len(before)-1 || len(r.slots) > len(before)+1 {
		t.Errorf("%d of %d sums were kept, in %d slots", kept, len(before), len(r.slots))
	}
}

// TestRunsAreCarried: where stats were only added to a chunk, only the runs they are in are
// summed again.
func TestRunsAreCarried(t *testing.T) {
	st := New(Options{})
	for i := range 500 {
		st.Root().Counter(fmt.Sprintf("c%04d", i))
	}
	x := st.NewExplorer()
	r := rankingOf(t, x, Explore{})
	for _, test := range []struct{ added, want string }{
		{"a", "[0 to 65]"}, {"z", "[6 to 502]"}, {"c0063x", "[1 to 130]"}, {"c0100x c0100y", "[1 to 132]"}, {"c0100xx c0300x", "[1 to 133 4 to 326]"},
	} {
		for k := range r.sums[0].runs {
			r.sums[0].runs[k].bytes = 0 // unless it is summed again
		}
		for name := range strings.FieldsSeq(test.added) {
			st.Root().Counter(name)
		}
		r = rankingOf(t, x, Explore{})
		var summed []string
		for k, run := range r.sums[0].runs {
			if run.bytes != 0 {
				summed = append(summed, fmt.Sprint(k, " to ", run.to))
			}
		}
		if got := fmt.Sprint(summed); got != test.want {
			t.Errorf("%s: summed runs %s, want %s", test.added, got, test.want)
		}
	}
}

// TestTagsOfReusedIDs: stats that get the ids and places of others have their own tags and
// sums.
func TestTagsOfReusedIDs(t *testing.T) {
	now := time.UnixMilli(1_000_000)
	st := New(Options{Now: func() time.Time { return now }})
	net := st.ScopeWith("", ScopeOptions{Network: true})
	x := st.NewExplorer()
	for _, tag := range []string{"old", "new"} {
		for i := range slotsPerBlock {
			net.Counter(fmt.Sprintf("m%04d", i), tags.Tag{Name: tag, Value: "v"})
		}
		got, err := x.Explore(Explore{Tags: true})
		if err != nil || len(got.Tags) != 1 || got.Tags[0].Name != tag || !got.Total.First.Equal(now) {
			t.Errorf("%s: %+v, %v", tag, got, err)
		}
		now = now.Add(time.Hour)
		st.RemoveNetwork(func(string) bool { return true })
	}
	if n := st.recycled.Load(); n != 2 {
		t.Errorf("ids were recycled %d times, want 2", n)
	}
}

// TestTagsOfChunksAreCarried: where stats were only added, the tags of the others are not read
// again.
func TestTagsOfChunksAreCarried(t *testing.T) {
	st := New(Options{})
	net := st.ScopeWith("", ScopeOptions{Network: true})
	add := func(name string) { net.Counter(name, tags.Tag{Name: "t", Value: name}) }
	for i := range 3000 {
		add(fmt.Sprintf("m%04d", i))
	}
	x := st.NewExplorer()
	rankingOf(t, x, Explore{Tags: true})
	known := func() (n int) {
		for _, c := range x.names[Scalars].sums {
			if c.known {
				n++
			}
		}
		return n
	}
	for _, name := range []string{"m1000+", "a", "z", "m1500+", "m0000+", "m2999+"} {
		add(name)
		rankingOf(t, x, Explore{})
		if n, all := known(), len(x.names[Scalars].sums); n != all {
			t.Errorf("with %s, the tags of %d of %d chunks are known", name, n, all)
		}
	}
	st.RemoveNetwork(func(name string) bool { return name == "m2000.t.m2000" })
	rankingOf(t, x, Explore{})
	if n, all := known(), len(x.names[Scalars].sums); n != all-1 {
		t.Errorf("with a stat less, the tags of %d of %d chunks are known", n, all)
	}
	got, err := x.Explore(Explore{Tags: true})
	if err != nil || len(got.Tags) != 1 || got.Tags[0].Series != 3005 {
		t.Errorf("tags %+v, %v", got.Tags, err)
	}
}

// TestHeavyRuns: a group with more than its part of the weight has a position in a run.
func TestHeavyRuns(t *testing.T) {
	now := time.UnixMilli(1_000_000)
	st := New(Options{Now: func() time.Time { return now }})
	const n = 5000
	for i := range n {
		if i == 3000 || i == 3010 {
			now = now.Add(time.Hour)
		}
		name := fmt.Sprintf("c%04d", i)
		if i == 4000 {
			st.Root().Counter(name + "." + string(bytes.Repeat([]byte("x.yz"), 40000)))
			continue
		}
		st.Root().Counter(name)
	}
	x := st.NewExplorer()
	v := st.View()
	defer v.Close()
	c := at(t, v, "c1234")
	ref, all := c.Ref(), span{0, n}
	r := rankingOf(t, x, Explore{Rates: func(yield func(uint64, float64) bool) { yield(ref, 100) }})
	covers := func(runs []span, pos int) bool {
		return slices.ContainsFunc(runs, func(s span) bool { return s.from <= pos && pos < s.to })
	}
	since := time.UnixMilli(1_000_000).Add(time.Hour).UnixMilli()
	for name, tt := range map[string]struct {
		by    By
		since int64
		in    span
		heavy []int // positions
		runs  int   // at most
	}{
		"rate":           {ByRate, 0, all, []int{1234}, 1},
		"rate in a part": {ByRate, 0, span{1200, 1300}, []int{1234}, 1},
		"rate elsewhere": {ByRate, 0, span{2000, 5000}, nil, 0},
		"bytes":          {ByBytes, 0, all, []int{4000}, 10},
		"new":            {ByNew, since + 1, all, nil, 10},
		"new in a run":   {ByNew, since, span{0, 3001}, []int{3000}, 1},
		"new behind":     {ByNew, since, span{0, 3000}, nil, 0},
		"none is new":    {ByNew, math.MaxInt64, all, nil, 0},
		"all are new":    {ByNew, 0, all, []int{}, 10},
	} {
		r.setSince(tt.since)
		runs, part := r.heavyRuns(x, tt.in, 10, tt.by)
		if len(runs) > tt.runs {
			t.Errorf("%s: %d runs %v, want %d at most", name, len(runs), runs, tt.runs)
		}
		if name == "all are new" && len(runs) != 10 {
			t.Errorf("%s: %d runs of equal weight, want 10", name, len(runs))
		}
		for i, s := range runs {
			if s.from < tt.in.from || s.to > tt.in.to || s.len() <= 0 || s.len() >= 2*runLength || i > 0 && s.from < runs[i-1].to {
				t.Errorf("%s: run %v of %v", name, s, runs)
			}
		}
		var total, sum float64 // sum is the weight since the last run
		weigh := func(f func(s span, w float64)) {
			r.eachRun(tt.in, func(c *chunkSums, run *runSums, from, to int, whole bool) {
				start := r.starts[slices.Index(r.sums, c)]
				f(span{start + from, start + to}, r.weighRun(x, c, run, from, to, whole, tt.by))
			})
		}
		weigh(func(_ span, w float64) { total += w })
		if part != total/10 {
			t.Errorf("%s: a part is %v, want a tenth of %v", name, part, total)
		}
		weigh(func(s span, w float64) {
			if sum += w; slices.Contains(runs, s) {
				sum = 0
			} else if sum > total/10 {
				t.Errorf("%s: no run is in the weight %v before %v", name, sum, s)
			}
		})
		for _, pos := range tt.heavy {
			if !covers(runs, pos) {
				t.Errorf("%s: position %d is in none of %v", name, pos, runs)
			}
		}
	}
}

// TestSizesAreMeasuredAgain: histograms grow, and an explorer notices that after a few
// questions.
func TestSizesAreMeasuredAgain(t *testing.T) {
	st := New(Options{})
	var all []*Histogram
	for i := range 2000 { // several chunks
		all = append(all, st.Root().Histogram(fmt.Sprintf("h%04d", i), Unspecified))
	}
	x := st.NewExplorer()
	total := func() uint64 {
		got, err := x.Explore(Explore{})
		if err != nil {
			t.Fatal(err)
		}
		return got.Total.Bytes
	}
	actual := func() (n uint64) {
		for _, b := range st.eachBlock() {
			for i := range b.n {
				n += b.sizeOf(i)
			}
		}
		return n
	}
	before := total()
	if before != actual() {
		t.Errorf("%d bytes, want %d", before, actual())
	}
	for i, h := range all {
		h.Record(uint64(i) * 1000)
	}
	st.Flush(FlushOptions{}).Close()
	want := actual()
	if want <= before {
		t.Fatalf("the histograms have %d bytes, had %d", want, before)
	}
	questions := 0
	for total() != want {
		if questions++; questions > 10 {
			t.Fatalf("%d bytes after %d questions, want %d", total(), questions, want)
		}
	}
}

// TestExplorerBytes: the memory of an explorer is about six bytes for each stat, and more
// for each tag.
func TestExplorerBytes(t *testing.T) {
	st := New(Options{})
	x := st.NewExplorer()
	if got := x.Bytes(); got != 0 {
		t.Errorf("%d bytes before the first question", got)
	}
	const n = 20 * slotsPerBlock
	for i := range n {
		st.Root().Counter(fmt.Sprintf("cluster.c%d.rq_%d", i/100, i))
	}
	rankingOf(t, x, Explore{})
	names := x.Bytes()
	if names < 4*n || names > 8*n {
		t.Errorf("%d bytes for %d stats", names, n)
	}
	rankingOf(t, x, Explore{Tags: true})
	counted := x.Bytes()
	if more := counted - names; more < 4*n/100 || more > n {
		t.Errorf("%d bytes more with the sums of a tag", more)
	}
	rankingOf(t, x, Explore{Tag: "proxy.cluster_name"})
	if more := x.Bytes() - counted; more < 8*n || more > 15*n {
		t.Errorf("%d bytes more with the order of a tag", more)
	}
}

// TestSumsOfReusedIDs: stats with the ids and names of stats that ended have their own sums.
func TestSumsOfReusedIDs(t *testing.T) {
	now := time.UnixMilli(1_000_000)
	st := New(Options{Now: func() time.Time { return now }})
	net := st.ScopeWith("", ScopeOptions{Network: true})
	create := func() (all []id) {
		for i := range 2 * slotsPerBlock {
			net.Counter(fmt.Sprintf("n%04d", i))
		}
		v := st.View()
		defer v.Close()
		for c := v.ByName(Scalars); c.Next(); {
			all = append(all, c.ID())
		}
		return all
	}
	x := st.NewExplorer()
	ids := create()
	rankingOf(t, x, Explore{})
	st.RemoveNetwork(func(string) bool { return true })
	now = now.Add(time.Hour)
	if again := create(); !slices.Equal(again[:100], ids[slotsPerBlock:][:100]) && !slices.Equal(again, ids) {
		t.Fatalf("the ids %v… are not used again: %v…", ids[:5], again[:5])
	}
	got, err := x.Explore(Explore{Since: now})
	if err != nil || got.Total.New != len(ids) || !got.Total.First.Equal(now) {
		t.Errorf("%d stats are new, the oldest of %v (%v), want %d of %v", got.Total.New, got.Total.First, err, len(ids), now)
	}
}

// TestGroupsOfLongNames: names with more segments than are counted have the right groups.
func TestGroupsOfLongNames(t *testing.T) {
	st := New(Options{})
	long := strings.Repeat("a.", 300)
	for _, name := range []string{"b.c", "b.d", "e", "f.g"} {
		st.Root().Counter(long + name)
	}
	x := st.NewExplorer()
	for n := 253; n <= 300; n++ {
		got, err := x.Explore(Explore{Prefix: long[:2*n], Limit: 10, By: ByName})
		want := 1
		if n == 300 {
			want = 3
		}
		if err != nil || len(got.Groups) != want || n < 300 && got.Groups[0].Series != 4 || n == 300 && got.Groups[0].Series != 2 {
			t.Errorf("under %d segments: %+v, %v", n, got.Groups, err)
		}
	}
}

// TestReadyAfterManyNewNames: an answer that would have to sort many new stats needs a
// preparation again, which is only that of the names and of the tag that it is about.
func TestReadyAfterManyNewNames(t *testing.T) {
	st, n := New(Options{}), 0
	create := func(more int) {
		for range more {
			n++
			st.Root().Counter("c", tags.Tag{Name: "n", Value: strconv.Itoa(n)})
		}
	}
	x := st.NewExplorer()
	expect := func(when string, names, n, other bool) {
		t.Helper()
		for tag, want := range map[string]bool{"": names, "n": n, "other": other} {
			if got := x.Ready(tag); got != want {
				t.Errorf("%s: ready for %q: %t, want %t", when, tag, got, want)
			}
		}
	}
	create(promptStats)
	expect("with few stats", true, true, true)
	create(1)
	expect("with many", false, false, false)
	x.Prepare("")
	expect("with names in order", true, false, false)
	x.Prepare("n")
	expect("with values in order", true, true, false)
	create(lateStats)
	expect("with as many new ones as are sorted at once", true, true, false)
	create(1)
	expect("with more", false, false, false)
	x.Prepare("")
	expect("with these in order", true, false, false)
	x.Prepare("n")
	expect("with their values in order", true, true, false)
}
