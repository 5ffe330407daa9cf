// Package outlier ejects hosts that fail more often than others.
//
// A [Detector] watches the hosts of one cluster. The proxy reports results on
// the hosts ([host.Host.ReportCode], [host.Host.ReportResult]). Consecutive
// errors are detected immediately, rates are compared once per interval. An
// ejected host has the flag [status.FailedOutlierCheck] until its ejection time
// is over.
//
// Reporting takes no lock unless a limit is reached.
package outlier
