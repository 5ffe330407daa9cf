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

// Config says what a [Parser] accepts. The zero value means all defaults.
type Config struct {
	// Off lists the tag styles that are not recognized; their characters are
	// then ordinary ones. Default: none, all styles are on.
	Off Styles

	// TagContainer makes a container option (c:) the tag container_id.
	// Default: the option is dropped, since every restart makes new series.
	TagContainer bool

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

// Parser takes lines apart. Make one with [New]; it may be shared by any
// number of goroutines.
type Parser struct{ cfg Config }

// New returns a parser for cfg.
func New(cfg Config) *Parser { return &Parser{cfg: cfg.withDefaults()} }

// Config returns the configuration in force, with the defaults filled in.
func (p *Parser) Config() Config { return p.cfg }

func (p *Parser) on(s Styles) bool { return p.cfg.Off&s == 0 }
