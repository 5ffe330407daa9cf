// Package outlier ejects hosts that behave worse than they should.
//
// A [Detector] watches the hosts of one cluster. The proxy reports results on
// the hosts ([host.Host.ReportCode], [host.Host.ReportResult]); runs of errors
// are found at once, rates are judged once per interval. An ejected host
// carries [status.FailedOutlierCheck] until it has served its time.
//
// Reporting takes no lock unless a limit is reached.
package outlier
