package line_test

import (
	"fmt"

	"github.com/statsd-admin/statsd-admin/statsd/line"
)

func ExampleParser_Parse() {
	p := line.New(line.Config{})
	var l line.Line
	if reason := p.Parse(&l, []byte("rt:12.5:13|ms|@0.5|#route:/a,canary")); reason != line.OK {
		fmt.Println(reason)
		return
	}
	fmt.Printf("%s %s %v rate %v\n", l.Name, l.Samples[0].Type, l.Values[0].Number, l.Samples[0].Rate)
	for _, t := range l.Tags {
		fmt.Printf("%s=%q\n", t.Key, t.Value)
	}
	fmt.Println(p.Parse(&l, []byte("rt:fast|ms")), "at byte", l.At)
	// Output:
	// rt ms 12.5 rate 0.5
	// canary=""
	// route="/a"
	// bad_value at byte 3
}

func ExampleParser_ParseEvent() {
	p := line.New(line.Config{})
	var l line.Line
	if reason := p.Split(&l, []byte("_e{6,8}:deploy|v2 is up|t:success|#env:prod")); reason == line.OK && l.Kind == line.KindEvent {
		e, reason := p.ParseEvent(&l)
		fmt.Println(reason, e.Title, e.Text, e.Alert, e.Tags)
	}
	// Output: ok deploy v2 is up success [env:prod]
}
