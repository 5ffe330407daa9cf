// Package decode decodes and validates the messages that configure upstream
// clusters.
//
//	d := decode.NewDecoder(decode.Options{Product: "proxy", V2: v2form.Messages()})
//	p, err := d.ClusterText("cluster.yaml", text, config.FormUnknown)
//	if err != nil {
//		return err // an *Errors: every error with file, line, column and field
//	}
//	fmt.Println(p.Cluster.Name, p.Cluster.LB.Policy, p.TypeURL())
//
// A message is YAML or JSON text, a tree of YAML nodes, wire bytes or a message in
// memory, in the v3 or the v2 form. The decoder checks the rules of each field in the
// names of the original form, upgrades v2 to v3, checks the fields against each other
// and against the known extensions, and fills in defaults.
//
// The result is a [config.Cluster], [config.Assignment] or [config.Secret] together
// with the original message, which /config_dump shows. Packages that use the values
// do not depend on message packages.
//
// A [Decoder] and its results are safe for concurrent use.
package decode
