package store_test

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/clocktest"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// walked is a stat as a walk over all stats finds it.
type walked struct {
	name    string
	created time.Time
	ref     uint64
	tags    []tags.Tag
}

func walkAll(st *store.Store) (all []walked) {
	v := st.View()
	defer v.Close()
	for _, set := range []store.NameSet{store.Texts, store.Scalars, store.Histograms} {
		for c := v.ByName(set); c.Next(); {
			all = append(all, walked{c.Name(), c.Created(), c.Ref(), c.AppendTags(nil)})
		}
	}
	return all
}

// groupOf returns the group of a name under a prefix.
func groupOf(name, prefix string) (group string, leaf bool) {
	if n := strings.IndexByte(name[len(prefix):], '.'); n >= 0 {
		return name[:len(prefix)+n+1], false
	}
	return name, true
}

// explored is what a walk over all stats finds for a question.
func explored(all []walked, q store.Explore, rates map[uint64]float64) map[string]store.Group {
	groups := make(map[string]store.Group)
	for _, w := range all {
		if !strings.HasPrefix(w.name, q.Prefix) {
			continue
		}
		name, leaf := groupOf(w.name, q.Prefix)
		if q.Tag != "" {
			n := slices.IndexFunc(w.tags, func(t tags.Tag) bool { return t.Name == q.Tag })
			if n < 0 {
				continue
			}
			name, leaf = w.tags[n].Value, false
		}
		key := name
		if leaf {
			key += "\x00"
		}
		g, had := groups[key]
		g.Name, g.Leaf = name, leaf
		g.Series++
		if !w.created.Before(q.Since) {
			g.New++
		}
		if !had || w.created.Before(g.First) {
			g.First = w.created
		}
		if !had || w.created.After(g.Last) {
			g.Last = w.created
		}
		g.PerSecond += rates[w.ref]
		groups[key] = g
	}
	return groups
}

// checkExplored compares an answer with a walk over all stats.
func checkExplored(t *testing.T, got store.Explored, want map[string]store.Group) {
	t.Helper()
	var total, listed store.Group
	for _, g := range want {
		total.Series += g.Series
		total.New += g.New
		total.PerSecond += g.PerSecond
	}
	if got.Total.Series != total.Series || got.Total.New != total.New || got.Total.PerSecond != total.PerSecond {
		t.Fatalf("the total is %+v, want %d series, %d new, %v per second", got.Total, total.Series, total.New, total.PerSecond)
	}
	for _, g := range got.Groups {
		key := g.Name
		if g.Leaf {
			key += "\x00"
		}
		w := want[key]
		bytes := g.Bytes
		g.Bytes, g.Samples = 0, 0
		if g != w {
			t.Fatalf("group %q is\n%+v, want\n%+v", key, g, w)
		}
		if bytes < 40*uint64(g.Series) {
			t.Fatalf("group %q of %d stats has %d bytes", key, g.Series, bytes)
		}
		listed.Series += g.Series
		listed.New += g.New
		delete(want, key)
	}
	if got.Others.Series != total.Series-listed.Series || got.Others.New != total.New-listed.New {
		t.Fatalf("the others are %+v, want %d series, %d new", got.Others, total.Series-listed.Series, total.New-listed.New)
	}
	for key, g := range want {
		if got.Complete && len(got.Groups) < 1000 || g.Series > got.Bound && len(got.Groups) < 1000 && !got.Complete {
			t.Fatalf("group %q of %d is missing (complete %v, bound %d, %d groups)", key, g.Series, got.Complete, got.Bound, len(got.Groups))
		}
	}
}

// TestExplorerEqualsWalk compares answers with a walk over all stats, while stats are
// created and removed.
func TestExplorerEqualsWalk(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 11))
	now := time.Unix(1_700_000_000, 0)
	st := store.New(store.Options{Now: func() time.Time { return now }})
	x := st.NewExplorer()
	own, net := st.Root(), st.ScopeWith("in", store.ScopeOptions{Network: true})
	word := func(n int) string { return string("abcdefghij-_~"[random.IntN(13)]) + fmt.Sprint(random.IntN(n)) }
	create := func() {
		parts := []string{word(3)}
		for range random.IntN(4) {
			parts = append(parts, word([]int{1, 3, 40, 3000}[random.IntN(4)]))
		}
		name := strings.Join(parts, ".")
		var tgs []tags.Tag
		if random.IntN(3) == 0 {
			tgs = []tags.Tag{{Name: "site", Value: word(5)}, {Name: "user", Value: word(1000)}}[:1+random.IntN(2)]
		}
		switch random.IntN(8) {
		case 0:
			own.Histogram(name, store.Unspecified, tgs...)
		case 1:
			own.Text(name)
		case 2:
			own.Gauge(name, tgs...)
		case 3:
			own.Counter(name, tgs...)
		default:
			net.Counter(name, tgs...)
		}
	}
	for round := range 36 {
		for range random.IntN(400) {
			create()
			if random.IntN(100) == 0 {
				now = now.Add(time.Duration(random.IntN(5000)) * time.Millisecond)
			}
		}
		now = now.Add(time.Duration(random.IntN(30)) * time.Second)
		if round%3 == 2 {
			end := fmt.Sprint(random.IntN(10))
			st.RemoveNetwork(func(name string) bool { return strings.HasSuffix(name, end) })
		}
		if round%12 == 11 {
			st.RemoveNetwork(func(string) bool { return random.IntN(10) > 0 })
		}
		all := walkAll(st)
		if n := st.Len(store.KindCounter) + st.Len(store.KindGauge) + st.Len(store.KindHistogram) + st.Len(store.KindText); n != len(all) {
			t.Fatalf("the store has %d stats, a walk finds %d", n, len(all))
		}
		rates := map[uint64]float64{0: 7, 1<<64 - 1: 7} // of no stat
		for n := range 20 {
			rates[uint64(n+1)<<40] = 7
		}
		for _, w := range all {
			if random.IntN(4) == 0 {
				rates[w.ref] = float64(random.IntN(100))
			}
		}
		for range 12 {
			q := store.Explore{By: store.By(random.IntN(6)), Limit: 1000, Since: now.Add(-time.Minute), Rates: maps.All(rates)}
			if n := random.IntN(4); n > 0 && len(all) > 0 {
				name := all[random.IntN(len(all))].name
				q.Prefix = name[:random.IntN(len(name)+1)]
			}
			if random.IntN(3) == 0 {
				q.Tag = []string{"site", "user", "none"}[random.IntN(3)]
			}
			got, err := x.Explore(q)
			if err != nil {
				t.Fatal(err)
			}
			checkExplored(t, got, explored(all, q, rates))
			if n := st.OpenViews(); n != 0 {
				t.Fatalf("%d views are open", n)
			}
		}
	}
}

// TestExplorerOrders checks each order of groups.
func TestExplorerOrders(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	st := store.New(store.Options{Now: func() time.Time { return now }})
	x := st.NewExplorer()
	rates := make(map[uint64]float64)
	for i, group := range []string{"many", "fast", "large", "new"} {
		if group == "new" {
			now = now.Add(time.Hour)
		}
		for k := range 8 - i {
			name := fmt.Sprintf("%s.%d", group, k)
			switch group {
			case "large":
				st.Root().Histogram(name, store.Unspecified)
			default:
				st.Root().Counter(name)
			}
		}
	}
	for _, w := range walkAll(st) {
		if strings.HasPrefix(w.name, "fast.") {
			rates[w.ref] = 2
		}
	}
	rates[1<<40], rates[math.MaxUint64] = 1000, 1000 // of stats that are not there
	samples := []store.Sampled{{Name: "large.1", PerSecond: 7}, {Name: "fast.0", PerSecond: 1}}
	for by, first := range map[store.By]string{store.BySeries: "many.", store.ByRate: "fast.", store.ByBytes: "large.", store.ByNew: "new.", store.BySamples: "large.", store.ByName: "fast."} {
		got, err := x.Explore(store.Explore{By: by, Limit: 1, Since: now, Rates: maps.All(rates), Samples: samples})
		if err != nil || len(got.Groups) != 1 || got.Groups[0].Name != first || got.Total.Series != 26 || got.Total.Samples != 8 || got.Others.Series != 26-got.Groups[0].Series {
			t.Errorf("order %d: %+v, %v", by, got, err)
		}
	}
}

// TestExplorerFindsLargeGroups checks that the groups that matter are found among too
// many to compare.
func TestExplorerFindsLargeGroups(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	st := store.New(store.Options{Now: func() time.Time { return now }})
	x := st.NewExplorer()
	for i := range 30_000 {
		st.Root().Counter(fmt.Sprintf("user.%05d.logins", i))
	}
	for i := range 400 {
		st.Root().Counter(fmt.Sprintf("user.23456.page%d", i))
	}
	now = now.Add(time.Hour)
	rates := make(map[uint64]float64)
	for i := range 20 {
		st.Root().Counter(fmt.Sprintf("user.12345.new%d", i))
	}
	for _, w := range walkAll(st) {
		if strings.HasPrefix(w.name, "user.27777.") {
			rates[w.ref] = 1000
		}
	}
	for by, first := range map[store.By]string{store.BySeries: "user.23456.", store.ByNew: "user.12345.", store.ByRate: "user.27777.", store.ByBytes: "user.23456."} {
		got, err := x.Explore(store.Explore{Prefix: "user.", By: by, Limit: 10, Since: now, Rates: maps.All(rates)})
		if err != nil || got.Complete || got.Groups[0].Name != first || got.Total.Series != 30_420 || got.Bound != 60 {
			t.Errorf("order %d: %+v, %v", by, got, err)
		}
	}
}

// TestGroupsOfSeveralKinds: a group that is found among few stats of one kind has its stats
// among the many of another, where groups are not all compared.
func TestGroupsOfSeveralKinds(t *testing.T) {
	st := store.New(store.Options{})
	x := st.NewExplorer()
	const n = 4000
	for i := range n {
		st.Root().Counter(fmt.Sprintf("u.%04d.c", i))
	}
	st.Root().Histogram("u.2500.h", store.Unspecified)
	st.Root().Histogram("u.3333.h", store.Unspecified)
	st.Root().Text("u.3001.t")
	st.Root().Text("u.other.t")
	got, err := x.Explore(store.Explore{Prefix: "u.", By: store.BySeries, Limit: 1000})
	if err != nil || got.Complete || got.Total.Series != n+4 || got.Bound != (n+511)/512 {
		t.Fatalf("total %+v, complete %t, bound %d, %v", got.Total, got.Complete, got.Bound, err)
	}
	series := map[string]int{}
	for _, g := range got.Groups {
		series[g.Name] = g.Series
	}
	for name, want := range map[string]int{"u.2500.": 2, "u.3333.": 2, "u.3001.": 2, "u.other.": 1, "u.0000.": 1} {
		if series[name] != want && (want > 1 || series[name] != 0) {
			t.Errorf("group %s has %d stats, want %d", name, series[name], want)
		}
	}
	if sum := got.Others.Series + len(got.Groups) + 3; got.Found < 1024 || sum != n+4 {
		t.Errorf("%d groups were found, and there are %d stats with the others", got.Found, sum)
	}
}

// TestSamplesOfGroupsThatAreNotCompared: groups with samples are found among too many.
func TestSamplesOfGroupsThatAreNotCompared(t *testing.T) {
	st := store.New(store.Options{})
	for i := range 3000 {
		st.Root().Counter(fmt.Sprintf("u.%04d.c", i))
	}
	samples := []store.Sampled{{Name: "u.2999.c", PerSecond: 5}, {Name: "u.2001", PerSecond: 7}, {Name: "u.gone.c", PerSecond: 9}}
	x := st.NewExplorer()
	got, err := x.Explore(store.Explore{Prefix: "u.", By: store.BySamples, Limit: 3, Samples: samples})
	if err != nil || len(got.Groups) != 3 {
		t.Fatalf("%+v, %v", got, err)
	}
	for i, want := range []store.Group{{Name: "u.2001.", Samples: 7}, {Name: "u.2999.", Samples: 5}, {Name: "u.0000."}} {
		if g := got.Groups[i]; g.Name != want.Name || g.Samples != want.Samples || g.Series != 1 {
			t.Errorf("group %d is %+v, want %+v", i, g, want)
		}
	}
	if got.Total.Samples != 12 || got.Others.Samples != 0 {
		t.Errorf("%v samples in all, %v of others", got.Total.Samples, got.Others.Samples)
	}
	got, err = x.Explore(store.Explore{Prefix: "u.", By: store.BySamples, Limit: 3, Samples: samples[1:]})
	if err != nil || got.Total.Samples != 7 || len(got.Groups) != 3 || got.Groups[1].Samples != 0 {
		t.Errorf("with samples of one group: %+v, %v", got, err)
	}
}

// TestRatesOfAnAnswerEnd: a rate does not stay for the next answer, wherever its stat is.
func TestRatesOfAnAnswerEnd(t *testing.T) {
	st := store.New(store.Options{})
	for i := range 3000 {
		st.Root().Counter(fmt.Sprintf("u.%04d.c", i))
	}
	x := st.NewExplorer()
	for _, w := range walkAll(st)[2990:] {
		for _, rate := range []float64{1, 0} {
			rates := map[uint64]float64{w.ref: rate}
			if rate == 0 {
				clear(rates)
			}
			got, err := x.Explore(store.Explore{Prefix: "u.", By: store.ByRate, Limit: 1, Rates: maps.All(rates)})
			if err != nil || got.Total.PerSecond != rate {
				t.Fatalf("%s: %v per second, %v, want %v", w.name, got.Total.PerSecond, err, rate)
			}
		}
	}
}

// TestNewStatsOfClockSetBack: the ages of stats, and so which are new, go by the time that
// passed, before the next flush and after it.
func TestNewStatsOfClockSetBack(t *testing.T) {
	now := time.Now()
	st := store.New(store.Options{Now: func() time.Time { return now }})
	x := st.NewExplorer()
	own := st.Root()
	site := tags.Tag{Name: "site", Value: "a"}
	ask := func(when string, fresh int, last time.Time) {
		t.Helper()
		for _, tag := range []string{"", "site"} {
			got, err := x.Explore(store.Explore{Tag: tag, Limit: 10, Since: now.Add(-time.Minute)})
			if err != nil || got.Total.New != fresh || got.Groups[0].New != fresh || !got.Total.Last.Equal(last.Truncate(time.Millisecond)) {
				t.Errorf("%s, tag %q: %+v, %v; want %d new stats, the last of %v", when, tag, got.Total, err, fresh, last)
			}
		}
	}
	own.Counter("a.old", site)
	now = now.Add(20 * time.Minute)
	st.Flush(store.FlushOptions{}).Close()
	own.Counter("a.young", site)
	ask("before", 1, now)
	now = clocktest.Set(now.Add(2*time.Minute), -time.Hour)
	young := now.Add(-2 * time.Minute)
	ask("after the clock was set back", 0, young)
	own.Counter("a.new", site)
	ask("with a stat of then", 1, now)
	last := now
	now = now.Add(30 * time.Second)
	st.Flush(store.FlushOptions{}).Close()
	ask("after a flush", 1, last)
	now = clocktest.Set(now.Add(2*time.Minute), -time.Hour)
	st.Flush(store.FlushOptions{}).Close()
	ask("after the flush that noticed that the clock was set back", 0, last.Add(-time.Hour))
}

// TestNewStatsOfClockSetForward: stats of the last minute are new however the clock was set
// since, and others are not.
func TestNewStatsOfClockSetForward(t *testing.T) {
	now := time.Now()
	st := store.New(store.Options{Now: func() time.Time { return now }})
	x := st.NewExplorer()
	created := []time.Duration{} // since the start
	start := now
	create := func() {
		st.Root().Counter(fmt.Sprint("a.", len(created)), tags.Tag{Name: "site", Value: "a"})
		created = append(created, now.Sub(start))
	}
	ask := func(when string) {
		t.Helper()
		want := 0
		for _, at := range created {
			if now.Sub(start)-at <= time.Minute {
				want++
			}
		}
		for _, tag := range []string{"", "site"} {
			got, err := x.Explore(store.Explore{Tag: tag, Limit: 10, Since: now.Add(-time.Minute)})
			if err != nil || got.Total.New != want || got.Groups[0].New != want {
				t.Errorf("%s, tag %q: %d new stats, %v; want %d", when, tag, got.Total.New, err, want)
			}
		}
	}
	flush := func(when string) {
		st.Flush(store.FlushOptions{}).Close()
		ask(when)
	}
	create()
	now = now.Add(50 * time.Second)
	create()
	flush("before")
	create()
	now = clocktest.Set(now.Add(5*time.Second), time.Hour)
	ask("after the clock was set forward")
	create()
	now = now.Add(6 * time.Second)
	ask("after some time")
	flush("after a flush")
	now = now.Add(40 * time.Second)
	create()
	flush("after more time")
	now = now.Add(30 * time.Second)
	flush("a minute after the clock was set")
	now = clocktest.Set(now.Add(20*time.Second), time.Hour)
	flush("after it was set again")
	create()
	now = clocktest.Set(now.Add(20*time.Second), -2*time.Hour)
	flush("after it was set back")
	create()
	now = now.Add(50 * time.Second)
	ask("at the end")
}

// TestOrdersOfManyTags asks for more tags than orders are kept, while stats are created and
// end: an order that was given up is made again.
func TestOrdersOfManyTags(t *testing.T) {
	st := store.New(store.Options{})
	x := st.NewExplorer()
	net := st.ScopeWith("", store.ScopeOptions{Network: true})
	want := map[string]int{}
	for i := range 30 {
		tag := fmt.Sprint("t", []int{0, 1, 2, 3, 4, 0, 5, 1, 0, 2}[i%10])
		name := fmt.Sprint("n", i)
		value := fmt.Sprint("v", i)
		net.Counter(name, tags.Tag{Name: tag, Value: value}, tags.Tag{Name: tag, Value: "again"})
		net.Gauge(name+".ends", tags.Tag{Name: tag, Value: value})
		want[tag]++
		st.RemoveNetwork(func(name string) bool { return strings.Contains(name, ".ends.") && i%2 == 0 })
		got, err := x.Explore(store.Explore{Tag: tag, Limit: 100})
		if err != nil || len(got.Groups) != want[tag] || !slices.ContainsFunc(got.Groups, func(g store.Group) bool { return g.Name == value }) {
			t.Fatalf("tag %s: %+v, %v; want %d values", tag, got, err, want[tag])
		}
		if below, err := x.Explore(store.Explore{Tag: tag, Prefix: "n", Limit: 100}); err != nil || len(below.Groups) != len(got.Groups) || below.Total.Series != got.Total.Series {
			t.Errorf("tag %s: %+v of a walk, %v, want %+v", tag, below, err, got)
		}
	}
}

// TestExplorerTags checks the counts of tags and of their values.
func TestExplorerTags(t *testing.T) {
	st := store.New(store.Options{})
	x := st.NewExplorer()
	net := st.ScopeWith("", store.ScopeOptions{Network: true})
	check := func(prefix string, want ...store.TagCount) {
		t.Helper()
		got, err := x.Explore(store.Explore{Prefix: prefix, Tags: true})
		if err != nil {
			t.Fatal(err)
		}
		for i := range got.Tags {
			if g := &got.Tags[i]; !g.Exact && i < len(want) && g.Values > want[i].Values*3/4 && g.Values < want[i].Values*4/3 {
				g.Values = want[i].Values
			}
		}
		if !slices.Equal(got.Tags, want) {
			t.Errorf("the tags under %q are %+v, want %+v", prefix, got.Tags, want)
		}
	}
	for i := range 20_000 {
		tgs := []tags.Tag{{Name: "site", Value: fmt.Sprint(i % 7)}}
		if i%2 == 0 {
			tgs = append(tgs, tags.Tag{Name: "user", Value: fmt.Sprint(i)})
		}
		net.Counter(fmt.Sprintf("page%d", i%1000), tgs...)
		if i == 10_000 {
			check("", store.TagCount{Name: "site", Series: 5001 + 3500, Values: 7, Exact: true}, store.TagCount{Name: "user", Series: 5001, Values: 5001})
		}
	}
	seven := 0
	for _, w := range walkAll(st) {
		if len(w.tags) > 0 {
			seven++
		}
	}
	check("", store.TagCount{Name: "site", Series: seven, Values: 7, Exact: true}, store.TagCount{Name: "user", Series: 10_000, Values: 10_000})
	check("page16.", store.TagCount{Name: "site", Series: 20, Values: 7, Exact: true}, store.TagCount{Name: "user", Series: 20, Values: 20, Exact: true})
	got, err := x.Explore(store.Explore{Tag: "user", Limit: 5})
	if err != nil || got.Total.Series != 10_000 || got.Complete || len(got.Groups) != 5 || got.Groups[0].Series != 1 {
		t.Errorf("the values are %+v, %v", got, err)
	}
	for i := range 50_000 {
		net.Counter(fmt.Sprintf("page.%d", i))
	}
	if _, err := x.Explore(store.Explore{Tag: "user", Prefix: "page."}); err != nil {
		t.Errorf("a prefix with 50,000 stats: %v", err)
	}
	net.Counter("page.50000")
	if _, err := x.Explore(store.Explore{Tag: "user", Prefix: "page."}); !errors.Is(err, store.ErrTooManySeries) {
		t.Errorf("a prefix with 50,001 stats: %v", err)
	}
	for limit, want := range map[int]int{999: 999, 1000: 1000, 1001: 1000, -1: 0} {
		if got, err := x.Explore(store.Explore{Limit: limit}); err != nil || len(got.Groups) != want {
			t.Errorf("limit %d: %d groups, %v, want %d", limit, len(got.Groups), err, want)
		}
	}
}

// TestExplorerConcurrently explores while stats are created, removed and flushed.
func TestExplorerConcurrently(t *testing.T) {
	st := store.New(store.Options{})
	st.KeepEnded()
	x := st.NewExplorer()
	net := st.ScopeWith("", store.ScopeOptions{Network: true})
	var wg sync.WaitGroup
	for g := range 2 {
		wg.Go(func() {
			for i := range 3000 {
				net.Counter(fmt.Sprintf("g%d.%d.total", g, i%1500), tags.Tag{Name: "site", Value: fmt.Sprint(i % 30)}).Inc()
				if i%500 == 499 {
					st.RemoveNetwork(func(name string) bool { return strings.Contains(name, ".1") })
					st.Flush(store.FlushOptions{})
				}
			}
		})
	}
	for g := range 2 {
		wg.Go(func() {
			for i := range 100 {
				q := store.Explore{By: store.By(i % 6), Limit: 20, Tags: g == 0}
				if i%4 == 3 {
					q.Tag = "site"
				}
				got, err := x.Explore(q)
				sum := got.Others.Series
				for _, group := range got.Groups {
					sum += group.Series
				}
				if err != nil || sum != got.Total.Series {
					t.Errorf("%+v, %v", got, err)
				}
			}
		})
	}
	wg.Wait()
	all := walkAll(st)
	q := store.Explore{Limit: 1000}
	got, err := x.Explore(q)
	if err != nil {
		t.Fatal(err)
	}
	got.Total.New = 0
	q.Since = time.Now().Add(time.Hour)
	want := explored(all, q, nil)
	for i := range got.Groups {
		got.Groups[i].New = 0
	}
	checkExplored(t, got, want)
}

// TestSamplesOfAStatAndAGroup has a stat whose name is also the first part of others.
func TestSamplesOfAStatAndAGroup(t *testing.T) {
	st := store.New(store.Options{})
	st.Root().Counter("a")
	st.Root().Counter("a.b")
	st.Root().Counter("c.d")
	got, err := st.NewExplorer().Explore(store.Explore{Limit: 10, Samples: []store.Sampled{{Name: "other", PerSecond: 9}, {Name: "a", PerSecond: 3}, {Name: "c", PerSecond: 7}, {Name: "a.b", PerSecond: 5}}})
	if err != nil {
		t.Fatal(err)
	}
	samples := make(map[string]float64)
	for _, g := range got.Groups {
		samples[g.Name] = g.Samples
	}
	if want := map[string]float64{"a": 3, "a.": 5, "c.": 7}; !maps.Equal(samples, want) {
		t.Errorf("got %v, want %v", samples, want)
	}
	// Samples outside of the prefix come first.
	got, err = st.NewExplorer().Explore(store.Explore{Prefix: "a.", Limit: 10, Samples: []store.Sampled{{Name: "c.d", PerSecond: 9}, {Name: "a.b", PerSecond: 5}}})
	if err != nil || len(got.Groups) != 1 || got.Groups[0].Samples != 5 {
		t.Errorf("below a: %+v, %v", got.Groups, err)
	}
}

// TestExplorerTagsOfNewStats counts tags again after each few stats, of which the new
// ones are in all places of the order.
func TestExplorerTagsOfNewStats(t *testing.T) {
	st := store.New(store.Options{})
	x := st.NewExplorer()
	for i, name := range []string{"m", "z", "a", "n", "b", "y", "c"} {
		st.Root().Counter(name, tags.Tag{Name: "t", Value: name})
		got, err := x.Explore(store.Explore{Tags: true})
		if want := []store.TagCount{{Name: "t", Series: i + 1, Values: i + 1, Exact: true}}; err != nil || !slices.Equal(got.Tags, want) {
			t.Errorf("with %q: %+v, %v, want %+v", name, got.Tags, err, want)
		}
	}
}
