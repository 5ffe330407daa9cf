package decode

import (
	"math"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"
)

// TestFreeFormValuesAreJSON: a number that JSON lacks is found wherever it is, and
// nothing else is refused.
func TestFreeFormValuesAreJSON(t *testing.T) {
	one, text := structpb.NewNumberValue(1), structpb.NewStringValue("NaN")
	list := func(all ...*structpb.Value) *structpb.Value {
		return structpb.NewListValue(&structpb.ListValue{Values: all})
	}
	object := func(names string, all ...*structpb.Value) *structpb.Value {
		fields := map[string]*structpb.Value{}
		for i, v := range all {
			fields[names[i:i+1]] = v
		}
		return structpb.NewStructValue(&structpb.Struct{Fields: fields})
	}
	shapes := func(v *structpb.Value) []*structpb.Value {
		return []*structpb.Value{
			v, list(v), list(v, one), list(one, v), list(one, v, text), list(list(v), one), list(one, list(v)), object("a", v),
			object("abc", v, one, text), object("ab", list(v, one), one), list(object("ab", v, one), one), object("a", object("ab", one, v)),
		}
	}
	for want, values := range map[bool][]*structpb.Value{
		true:  {one, text, structpb.NewNullValue(), structpb.NewBoolValue(true), structpb.NewNumberValue(math.MaxFloat64), list(), object("")},
		false: {structpb.NewNumberValue(math.NaN()), structpb.NewNumberValue(math.Inf(1)), structpb.NewNumberValue(math.Inf(-1))},
	} {
		for _, v := range values {
			for i, shape := range shapes(v) {
				for range 5 { // maps have no order
					if got := isJSON(shape.ProtoReflect()); got != want {
						t.Fatalf("%v in shape %d: %t", v, i, got)
					}
				}
			}
		}
	}
}
