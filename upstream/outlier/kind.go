package outlier

import "github.com/statsd-admin/statsd-admin/upstream/config"

// Kind is the kind of a detection.
type Kind uint8

// The kinds of detections.
const (
	Consecutive5xx Kind = iota
	ConsecutiveGatewayFailure
	SuccessRate
	FailurePercentage
	ConsecutiveLocalOriginFailure
	LocalOriginSuccessRate
	LocalOriginFailurePercentage
	numKinds
)

// Kinds returns all kinds.
func Kinds() []Kind {
	all := make([]Kind, numKinds)
	for k := range all {
		all[k] = Kind(k)
	}
	return all
}

// String returns the kind as in the names of statistics.
func (k Kind) String() string {
	return [...]string{
		"consecutive_5xx", "consecutive_gateway_failure", "success_rate", "failure_percentage",
		"consecutive_local_origin_failure", "local_origin_success_rate", "local_origin_failure_percentage",
	}[k]
}

// setting is a configured number that a runtime value can override.
type setting struct {
	key string
	get func(*config.Outlier) uint64
}

// The settings.
var (
	intervalMS   = setting{"interval_ms", func(c *config.Outlier) uint64 { return uint64(c.Interval.Milliseconds()) }}
	baseMS       = setting{"base_ejection_time_ms", func(c *config.Outlier) uint64 { return uint64(c.BaseEjectionTime.Milliseconds()) }}
	maxMS        = setting{"max_ejection_time_ms", func(c *config.Outlier) uint64 { return uint64(c.MaxEjectionTime.Milliseconds()) }}
	jitterMS     = setting{"max_ejection_time_jitter_ms", func(c *config.Outlier) uint64 { return uint64(c.MaxEjectionTimeJitter.Milliseconds()) }}
	maxPercent   = setting{"max_ejection_percent", func(c *config.Outlier) uint64 { return uint64(c.MaxEjectionPercent) }}
	limit5xx     = setting{"consecutive_5xx", func(c *config.Outlier) uint64 { return uint64(c.Consecutive5xx) }}
	limitGateway = setting{"consecutive_gateway_failure", func(c *config.Outlier) uint64 { return uint64(c.ConsecutiveGatewayFailure) }}
	limitLocal   = setting{"consecutive_local_origin_failure", func(c *config.Outlier) uint64 { return uint64(c.ConsecutiveLocalFailure) }}

	rateHosts    = setting{"success_rate_minimum_hosts", func(c *config.Outlier) uint64 { return uint64(c.SuccessRateMinimumHosts) }}
	rateVolume   = setting{"success_rate_request_volume", func(c *config.Outlier) uint64 { return uint64(c.SuccessRateRequestVolume) }}
	rateFactor   = setting{"success_rate_stdev_factor", func(c *config.Outlier) uint64 { return uint64(c.SuccessRateStdevFactor) }}
	failPercent  = setting{"failure_percentage_threshold", func(c *config.Outlier) uint64 { return uint64(c.FailurePercentageThreshold) }}
	failureHosts = setting{"failure_percentage_minimum_hosts", func(c *config.Outlier) uint64 { return uint64(c.FailurePercentageMinimumHosts) }}
	failVolume   = setting{"failure_percentage_request_volume", func(c *config.Outlier) uint64 { return uint64(c.FailurePercentageRequestVolume) }}
)

// enforcing are the percentages of detections that lead to an ejection.
var enforcing = [numKinds]setting{
	Consecutive5xx:                {"enforcing_consecutive_5xx", func(c *config.Outlier) uint64 { return uint64(c.EnforcingConsecutive5xx) }},
	ConsecutiveGatewayFailure:     {"enforcing_consecutive_gateway_failure", func(c *config.Outlier) uint64 { return uint64(c.EnforcingConsecutiveGatewayFailure) }},
	SuccessRate:                   {"enforcing_success_rate", func(c *config.Outlier) uint64 { return uint64(c.EnforcingSuccessRate) }},
	FailurePercentage:             {"enforcing_failure_percentage", func(c *config.Outlier) uint64 { return uint64(c.EnforcingFailurePercentage) }},
	ConsecutiveLocalOriginFailure: {"enforcing_consecutive_local_origin_failure", func(c *config.Outlier) uint64 { return uint64(c.EnforcingConsecutiveLocalFailure) }},
	LocalOriginSuccessRate:        {"enforcing_local_origin_success_rate", func(c *config.Outlier) uint64 { return uint64(c.EnforcingLocalSuccessRate) }},
	LocalOriginFailurePercentage:  {"enforcing_failure_percentage_local_origin", func(c *config.Outlier) uint64 { return uint64(c.EnforcingLocalFailurePercentage) }},
}
