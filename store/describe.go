package store

import "maps"

// Description documents a family of stats for the exposition formats.
type Description struct {
	// Help is the text of the HELP line.
	Help string
	// Unit is the unit, such as "seconds" or "bytes". OpenMetrics and protobuf
	// show it if the metric name ends with it.
	Unit string
	// Counter shows gauges as counters. It is for fractional totals.
	Counter bool
}

// Describe sets the description of the program's stats whose tag-extracted name
// is family. The stats need not exist yet.
func (s *Store) Describe(family string, d Description) { s.describe(false, family, d) }

// Describe sets the description of the stats that sc has by name, whatever their tags.
// The stats need not exist yet.
func (sc *Scope) Describe(name string, d Description) {
	sc.store.describe(sc.cls.network, sc.familyOf(name), d)
}

// familyOf returns the family of the stats that sc has by name.
func (sc *Scope) familyOf(name string) string {
	family := sc.FullName(name)
	if sc.tagged {
		family, _ = sc.store.extract(family, sc.cls.network)
	}
	return family
}

// Help sets the help texts of stats that sc has by name, like [Scope.Describe].
func (sc *Scope) Help(texts map[string]string) {
	all := make(map[string]Description, len(texts))
	for name, text := range texts {
		all[sc.familyOf(name)] = Description{Help: text}
	}
	sc.store.describeAll(sc.cls.network, all)
}

func (s *Store) describe(network bool, family string, d Description) {
	s.describeAll(network, map[string]Description{family: d})
}

func (s *Store) describeAll(network bool, more map[string]Description) {
	s.mu.Lock()
	defer s.mu.Unlock()
	to := &s.described
	if network {
		to = &s.describedNetwork
	}
	all := make(map[string]Description)
	if old := to.Load(); old != nil {
		all = maps.Clone(*old)
	}
	maps.Copy(all, more)
	to.Store(&all)
}

// Descriptions returns the descriptions by family. The map must not be modified.
func (s *Store) Descriptions() map[string]Description {
	if all := s.described.Load(); all != nil {
		return *all
	}
	return nil
}

// DescribeNetwork registers a function that returns the description of the
// stats from network input whose tag-extracted name is family. If it returns
// the zero value, the description of [Scope.Describe] applies. Expositions call
// it once for each family, so it must be quick. It must be safe for concurrent
// use and must not call the store. Nil unregisters it.
func (s *Store) DescribeNetwork(describe func(family string) Description) {
	s.networkDescribed.Store(&describe)
}

// NetworkDescription returns the description of a family of stats from network
// input.
func (s *Store) NetworkDescription(family string) Description {
	if f := s.networkDescribed.Load(); f != nil && *f != nil {
		if d := (*f)(family); d != (Description{}) {
			return d
		}
	}
	if all := s.describedNetwork.Load(); all != nil {
		return (*all)[family]
	}
	return Description{}
}

// DescriptionOf returns the description of the stat under c.
func (s *Store) DescriptionOf(c *Cursor) Description {
	all := s.Descriptions()
	if len(all) == 0 && !c.Network() {
		return Description{}
	}
	family := ""
	if f := c.Family(); f != nil {
		family = f.String()
	} else {
		family = c.Name()
	}
	if c.Network() {
		return s.NetworkDescription(family)
	}
	return all[family]
}
