package process_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/render"
	"github.com/statsd-admin/statsd-admin/render/naming"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/process"
)

func registered(t *testing.T) (*store.Store, func()) {
	st := store.New(store.Options{Naming: naming.Rules{Bare: process.Segments()}})
	remove, err := process.Register(st)
	if err != nil {
		t.Fatal(err)
	}
	return st, remove
}

func value(t *testing.T, st *store.Store, name string) float64 {
	t.Helper()
	v := st.View()
	defer v.Close()
	c, ok := v.Find(name)
	if !ok {
		t.Fatalf("%s does not exist", name)
	}
	return c.Float()
}

func TestValuesAreThoseOfTheProcess(t *testing.T) {
	st, _ := registered(t)
	if n := value(t, st, "process.resident_memory_bytes"); n < 1<<20 || n > 1<<36 {
		t.Errorf("%v bytes are resident", n)
	}
	if n := value(t, st, "process.start_time_seconds"); time.Since(time.Unix(int64(n), 0)) > time.Hour || n > float64(time.Now().Unix()+2) {
		t.Errorf("started at %v", n)
	}
	fds := value(t, st, "process.open_fds")
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if n := value(t, st, "process.open_fds"); n != fds+1 {
		t.Errorf("%v descriptors with another open file, %v before", n, fds)
	}
	cpu := value(t, st, "process.cpu_seconds_total")
	for start := time.Now(); value(t, st, "process.cpu_seconds_total") == cpu; {
		if time.Since(start) > time.Minute {
			t.Fatal("the CPU time does not grow")
		}
	}
	goroutines := value(t, st, "go.goroutines")
	done := make(chan struct{})
	defer close(done)
	go func() { <-done }()
	if n := value(t, st, "go.goroutines"); n <= goroutines-1 {
		t.Errorf("%v goroutines after another started, %v before", n, goroutines)
	}
}

func TestExpositionHasTheNamesOfClientLibraries(t *testing.T) {
	st, remove := registered(t)
	show := func() string {
		var b strings.Builder
		if err := render.Exposition(&b, st, render.Options{}); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	got := show()
	for _, want := range []string{
		"# HELP process_cpu_seconds_total Total user and system CPU time spent in seconds.\n# TYPE process_cpu_seconds_total counter\nprocess_cpu_seconds_total{} ",
		"# TYPE process_open_fds gauge\n", "# TYPE process_max_fds gauge\n", "# TYPE process_virtual_memory_bytes gauge\n",
		"# TYPE go_goroutines gauge\n", "# TYPE go_memstats_alloc_bytes gauge\n", "# TYPE go_memstats_alloc_bytes_total counter\n",
		`go_info{version="go`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if remove(); show() != "" {
		t.Errorf("left:\n%s", show())
	}
}

func Example() {
	st := store.New(store.Options{Naming: naming.Rules{Bare: process.Segments()}})
	remove, err := process.Register(st)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer remove()
	v := st.View()
	defer v.Close()
	c, _ := v.Find("go.goroutines")
	fmt.Println(c.Name(), c.Float() > 0)
	// Output: go.goroutines true
}
