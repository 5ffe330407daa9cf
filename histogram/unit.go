package histogram

// Unit is the unit of recorded values.
type Unit uint8

const (
	Unspecified Unit = iota
	Bytes
	Microseconds
	Milliseconds
	// Percent values are recorded as fraction × 1,000,000 and shown as
	// fractions: 1 means one hundred percent.
	Percent
	// Seconds keep six decimals and have bounds from 5 ms to 10 s, unless the Config
	// has others.
	Seconds
)

// percentUnits is how many recorded units make one hundred percent.
const percentUnits = 1_000_000

// String returns the unit in lower case: "unspecified", "bytes" and so on.
func (u Unit) String() string {
	if u > Seconds {
		return "unknown"
	}
	return [...]string{"unspecified", "bytes", "microseconds", "milliseconds", "percent", "seconds"}[u]
}
