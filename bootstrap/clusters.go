package bootstrap

import (
	"errors"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/config/decode"
)

// Clusters holds the configuration of upstream clusters.
type Clusters struct {
	Static  []*decode.ParsedCluster // static_resources.clusters, in order
	Secrets []*decode.ParsedSecret  // static_resources.secrets, in order

	CDS *config.ConfigSource // where further clusters come from; nil: there are none
	ADS *config.APISource    // the aggregated stream; nil: there is none

	Local      string       // name of the static cluster that this server belongs to; empty: none
	Bind       *config.Bind // of clusters without one; nil: none
	OutlierLog string       // file for events of outlier detection; empty: none
}

// decode reads the sections about clusters, once all others were read.
func (c *Clusters) decode(d *decoder, static, dynamic, manager Raw) {
	x := d.messages
	if static.Node != nil {
		d.message(static.Node, static.Path, []field{
			{"clusters", func(_ *decoder, n *yaml.Node, path string) { c.setStatic(x, n, path) }},
			{"listeners", ignored},
			{"secrets", func(_ *decoder, n *yaml.Node, path string) { c.setSecrets(x, n, path) }},
		})
	}
	if dynamic.Node != nil {
		seen := d.message(dynamic.Node, dynamic.Path, []field{
			{"cds_config", part(x, &c.CDS, (*decode.Decoder).ConfigSourceNode)},
			{"ads_config", part(x, &c.ADS, (*decode.Decoder).APISourceNode)},
			{"lds_config", ignored},
			{"cds_resources_locator", ignored},
			{"lds_resources_locator", ignored},
		})
		c.checkControl(d, c.ADS, seen["ads_config"], join(dynamic.Path, "ads_config"))
		if c.CDS != nil {
			c.checkControl(d, c.CDS.API, seen["cds_config"], join(dynamic.Path, "cds_config"))
		}
	}
	if manager.Node != nil {
		seen := d.message(manager.Node, manager.Path, []field{
			{"local_cluster_name", text(&c.Local)},
			{"outlier_detection", nested(
				field{"event_log_path", outputFile(&c.OutlierLog)},
				field{"event_service", ignored},
			)},
			{"upstream_bind_config", part(x, &c.Bind, (*decode.Decoder).BindNode)},
			{"load_stats_config", ignored},
			{"enable_deferred_cluster_creation", ignored},
		})
		if at := seen["local_cluster_name"]; at != nil && len(d.errs) == 0 {
			x.faults(decode.CheckLocalCluster(c.Local, c.Static), "", at)
		}
	}
}

// checkControl reports a control plane whose cluster is not a static one. While
// there are other errors, among clusters say, that is not known.
func (c *Clusters) checkControl(d *decoder, api *config.APISource, n *yaml.Node, path string) {
	if api == nil || len(d.errs) > 0 {
		return
	}
	for _, g := range api.GRPC {
		if g.ClusterName != "" && !slices.ContainsFunc(c.Static, func(s *decode.ParsedCluster) bool { return s.Cluster.Name == g.ClusterName }) {
			d.errorf(n, path, "%q is not a static cluster", g.ClusterName)
		}
	}
}

// setStatic decodes the list of static clusters.
func (c *Clusters) setStatic(x *messages, n *yaml.Node, path string) {
	c.Static = append(c.Static, decodeList(x, n, path, x.config.ClusterNode)...)
	x.faults(decode.CheckNames(c.Static), path, n)
}

// setSecrets decodes the list of static secrets.
func (c *Clusters) setSecrets(x *messages, n *yaml.Node, path string) {
	c.Secrets = append(c.Secrets, decodeList(x, n, path, x.config.SecretNode)...)
	x.faults(decode.CheckSecretNames(c.Secrets), path, n)
}

// decodeList decodes a list of messages. It reports the errors of all and returns
// the valid ones.
func decodeList[P interface{ Warnings() []*decode.Error }](x *messages, n *yaml.Node, path string, decode func(*yaml.Node, decode.Source, config.Form) (P, error)) (sound []P) {
	if n.Kind != yaml.SequenceNode {
		x.d.errorf(n, path, "%s is not a list", x.d.show(n, path))
		return nil
	}
	for i, child := range n.Content {
		s := x.source()
		s.Index = i
		p, err := decode(child, s, config.FormUnknown)
		at := fmt.Sprintf("%s[%d]", path, i)
		if err != nil {
			x.faults(err, at, child)
			continue
		}
		x.warnings(p.Warnings(), at)
		sound = append(sound, p)
	}
	return sound
}

// messages decodes the messages of clusters for a decoder of the file.
type messages struct {
	d      *decoder
	config *decode.Decoder
}

func (x *messages) source() decode.Source {
	return decode.Source{Locate: x.d.doc.position}
}

// part decodes one message that stands outside a cluster.
func part[T any](x *messages, to **T, decode func(*decode.Decoder, *yaml.Node, decode.Source, config.Form) (*T, []*decode.Error, error)) setter {
	return func(_ *decoder, n *yaml.Node, path string) {
		v, warnings, err := decode(x.config, n, x.source(), config.FormUnknown)
		x.faults(err, path, n)
		x.warnings(warnings, path)
		*to = v
	}
}

// faults takes over the errors in the value n of the field path.
func (x *messages) faults(err error, path string, n *yaml.Node) {
	var faults *decode.Errors
	switch {
	case err == nil:
	case !errors.As(err, &faults):
		x.d.errorf(n, path, "%v", err)
	default:
		for _, f := range faults.List {
			e := x.convert(f, path)
			if e.Position.Line == 0 {
				e.Position = x.d.doc.position(n)
			}
			x.d.errs = append(x.d.errs, e)
		}
		x.d.dropped += faults.Dropped
	}
}

// warnings takes over what deserves a line in the log.
func (x *messages) warnings(list []*decode.Error, path string) {
	for _, w := range list {
		e := x.convert(w, path)
		if w.Kind == decode.UnknownField {
			x.d.unknown = append(x.d.unknown, e.Position.String()+": "+e.Field)
			continue
		}
		x.d.warnings = append(x.d.warnings, e.Error())
	}
}

// convert adds the path of the message to an error, and the resource to its text.
func (x *messages) convert(f *Error, path string) *Error {
	e := &Error{Position: f.Position, Kind: f.Kind, Field: path, Message: f.Message}
	if f.Field != "" {
		e.Field = join(path, f.Field)
	}
	if f.Resource != "" {
		e.Message = f.Resource + ": " + e.Message
	}
	return e
}
