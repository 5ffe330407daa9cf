// Package decode turns the messages that configure upstream clusters into
// checked, immutable values.
//
//	d := decode.NewDecoder(decode.Options{Product: "proxy", V2: v2form.Messages()})
//	p, err := d.ClusterText("cluster.yaml", text, config.FormUnknown)
//	if err != nil {
//		return err // an *Errors: every mistake with file, line, column and field
//	}
//	fmt.Println(p.Cluster.Name, p.Cluster.LB.Policy, p.TypeURL())
//
// Messages come as YAML or JSON texts, as trees of YAML nodes, as wire bytes or
// as messages that a program built, in the v3 form or in the v2 form. Each goes
// through the same steps: decode, check the fields by their own rules in the
// names of the form it was written in, lift v2 to v3, check the fields against
// each other and against what is loaded, write out what is in force.
//
// The result is a [config.Cluster] or an [config.Assignment] of plain Go values, and beside
// it the message exactly as it was given, for those who show it. Nothing behind
// this package needs to know the messages.
//
// A [Decoder] and all it returns may be used by any number of goroutines.
package decode
