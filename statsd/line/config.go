package line

// Styles is a set of ways to write tags.
type Styles uint8

// The styles of tags.
const (
	DogStatsD Styles = 1 << iota // name:1|c|#k:v,k:v
	Librato                      // name#k=v,k=v:1|c
	Influx                       // name,k=v,k=v:1|c
	SignalFX                     // na[k=v,k=v]me:1|c
	Graphite                     // name;k=v;k=v:1|c
)

// Config configures a [Parser]. The zero value means all defaults.
type Config struct {
	// Off lists the disabled tag styles, whose special characters then have no
	// special meaning. Default: none.
	Off Styles

	// TagContainer turns a container option (c:) into the tag container_id.
	// Default: the option is ignored, since every restart of a container would
	// create new series.
	TagContainer bool

	// Exporter reads lines as statsd_exporter does: dots at the end of a name
	// stay, tags without a value are errors, and timers can be negative.
	Exporter bool
	// AppendKey appends the replacement of a tag key. Of tags whose keys are
	// then equal, the last one wins. Default: keys stay as received.
	AppendKey func(dst, key []byte) []byte

	LineBytes     int // longest line; default 8192
	NameBytes     int // longest name; default 1024
	Segments      int // most dot-separated parts of a name; default 32
	Tags          int // most different tags; default 32
	TagKeyBytes   int // longest tag key; default 128
	TagValueBytes int // longest tag value; default 512
}

// withDefaults returns c with zero limits replaced. A negative limit means no
// limit.
func (c Config) withDefaults() Config {
	for _, f := range []struct {
		v   *int
		def int
	}{
		{&c.LineBytes, 8192}, {&c.NameBytes, 1024}, {&c.Segments, 32},
		{&c.Tags, 32}, {&c.TagKeyBytes, 128}, {&c.TagValueBytes, 512},
	} {
		if *f.v == 0 {
			*f.v = f.def
		} else if *f.v < 0 {
			*f.v = 1<<31 - 1
		}
	}
	return c
}

// Parser parses lines. Create one with [New]. It is safe for concurrent use.
type Parser struct{ cfg Config }

// New returns a parser with the configuration cfg.
func New(cfg Config) *Parser { return &Parser{cfg: cfg.withDefaults()} }

// Config returns the configuration with the defaults filled in.
func (p *Parser) Config() Config { return p.cfg }

func (p *Parser) on(s Styles) bool { return p.cfg.Off&s == 0 }
