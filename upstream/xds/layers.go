package xds

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	runtimev3 "github.com/envoyproxy/go-control-plane/envoy/service/runtime/v3"

	"github.com/statsd-admin/statsd-admin/internal/oneline"
	"github.com/statsd-admin/statsd-admin/upstream/config/decode"
)

// runLayer follows one runtime layer.
func (c *Client) runLayer(ctx context.Context, l *Layer) {
	to := &layer{c: c, name: l.Name, to: cmp.Or(l.Layer, l.Name), done: sync.OnceFunc(c.layersWaiting.Done)}
	defer to.started()
	select {
	case <-c.manager.PrimaryReady():
		sc := c.o.Store.Own().Scope("runtime." + oneline.Clean(l.Name))
		c.follow(ctx, layerKind, l.Name, &l.Source, to, newUpdateStats(sc), sc)
	case <-ctx.Done():
	}
}

// layer applies the values of a runtime layer.
type layer struct {
	c    *Client
	name string // name of the resource
	to   string // name of the layer
	done func() // called once
}

func (l *layer) started() { l.done() }

func (l *layer) apply(u *update) (changed bool, faults []fault) {
	if len(u.removed) > 0 {
		if err := l.put(nil); err != nil {
			return false, []fault{{l.name, err}}
		}
		return true, nil
	}
	if len(u.resources) != 1 {
		return false, []fault{{"", fmt.Errorf("xds: %d resources for runtime layer %q, exactly one is allowed", len(u.resources), l.name)}}
	}
	r := &u.resources[0]
	if err := l.set(r); err != nil {
		l.c.log.Warn("runtime layer refused", "layer", l.name, "error", err.Error())
		return false, []fault{{r.Name, err}}
	}
	return true, nil
}

func (l *layer) set(r *decode.Resource) error {
	var m runtimev3.Runtime
	if err := l.c.o.Decoder.MessageResource(r, &m); err != nil {
		return err
	}
	if m.GetName() != l.name || r.Name != l.name {
		return misnamed(r, m.GetName())
	}
	return l.put(m.GetLayer().AsMap())
}

func (l *layer) put(values map[string]any) error {
	if l.c.o.SetLayer == nil {
		return errors.New("xds: runtime layers are not supported by this program")
	}
	if err := l.c.o.SetLayer(l.to, values); err != nil {
		return fmt.Errorf("xds: runtime layer %q: %w", l.name, err)
	}
	return nil
}
