package eventstream

import (
	"math"
	"strconv"
)

// ping is a comment that keeps connections open and shows that the server is
// alive.
const ping = ":\n\n"

// quantiles of the latencies and the keys they are shown under.
var quantiles = [...]struct {
	key string
	q   float64
}{
	{"0", 0}, {"25", .25}, {"50", .5}, {"75", .75}, {"90", .9}, {"95", .95}, {"99", .99}, {"99.5", .995}, {"100", 1},
}

// object writes the members of one JSON object with the separators that readers
// of the stream expect.
type object struct{ b []byte }

func (o *object) key(name string) {
	if n := len(o.b); o.b[n-1] != '{' {
		o.b = append(o.b, ", "...)
	}
	o.b = append(o.b, '"')
	o.b = append(o.b, name...)
	o.b = append(o.b, `": `...)
}

func (o *object) raw(name, value string) {
	o.key(name)
	o.b = append(o.b, value...)
}

func (o *object) number(name string, value uint64) {
	o.key(name)
	o.b = strconv.AppendUint(o.b, value, 10)
}

func (o *object) zero(names ...string) {
	for _, name := range names {
		o.raw(name, "0")
	}
}

func (o *object) quoted(name string, value []byte) {
	o.key(name)
	o.b = append(o.b, value...)
}

// frame is what the events of one flush have in common.
type frame struct {
	now    int64  // Unix time in seconds
	window uint64 // milliseconds
}

// appendCommand appends the event about the requests of a cluster. grown is
// how much its series grew over the window.
func (c *cluster) appendCommand(dst []byte, f frame, grown *sample, maxPending uint64) []byte {
	o := object{append(dst, "data: {"...)}
	o.raw("type", `"HystrixCommand"`)
	o.quoted("name", c.quoted)
	o.raw("group", `"NA"`)
	o.key("currentTime")
	o.b = strconv.AppendInt(o.b, f.now, 10)
	o.raw("isCircuitBreakerOpen", "false")
	o.number("errorPercentage", errorPercentage(grown))
	o.number("errorCount", grown[failures])
	o.number("requestCount", grown[total])
	o.zero("rollingCountCollapsedRequests", "rollingCountExceptionsThrown")
	o.number("rollingCountFailure", grown[failures])
	o.zero("rollingCountFallbackFailure", "rollingCountFallbackRejection", "rollingCountFallbackSuccess", "rollingCountResponsesFromCache")
	o.number("rollingCountSemaphoreRejected", grown[rejected])
	o.zero("rollingCountShortCircuited")
	o.number("rollingCountSuccess", grown[success])
	o.zero("rollingCountThreadPoolRejected")
	o.number("rollingCountTimeout", grown[timeouts])
	o.zero("rollingCountBadRequests", "currentConcurrentExecutionCount")
	o.raw("latencyExecute_mean", `"null"`)
	o.key("latencyExecute")
	o.b = c.appendLatencies(o.b)
	o.zero("propertyValue_circuitBreakerRequestVolumeThreshold",
		"propertyValue_circuitBreakerSleepWindowInMilliseconds",
		"propertyValue_circuitBreakerErrorThresholdPercentage")
	o.raw("propertyValue_circuitBreakerForceOpen", "false")
	o.raw("propertyValue_circuitBreakerForceClosed", "true")
	o.raw("propertyValue_executionIsolationStrategy", `"SEMAPHORE"`)
	o.zero("propertyValue_executionIsolationThreadTimeoutInMilliseconds")
	o.raw("propertyValue_executionIsolationThreadInterruptOnTimeout", "false")
	o.number("propertyValue_executionIsolationSemaphoreMaxConcurrentRequests", maxPending)
	o.zero("propertyValue_fallbackIsolationSemaphoreMaxConcurrentRequests")
	o.raw("propertyValue_requestCacheEnabled", "false")
	o.raw("propertyValue_requestLogEnabled", "true")
	o.number("reportingHosts", c.hosts)
	o.number("propertyValue_metricsRollingStatisticalWindowInMilliseconds", f.window)
	return append(o.b, "}\n\n"...)
}

// errorPercentage returns the percentage of failed requests, rounded down.
func errorPercentage(grown *sample) uint64 {
	if grown[total] == 0 {
		return 0
	}
	return 100 * (grown[failures] + grown[timeouts] + grown[rejected]) / grown[total]
}

// appendLatencies appends the quantiles of the last interval. An interval
// without requests has none and shows 0, since JSON has no NaN.
func (c *cluster) appendLatencies(dst []byte) []byte {
	o := object{append(dst, '{')}
	if c.times != nil {
		for _, p := range quantiles {
			o.key(p.key)
			v := c.times.Quantile(p.q)
			if math.IsNaN(v) || math.IsInf(v, 0) {
				v = 0
			}
			o.b = strconv.AppendFloat(o.b, v, 'f', 6, 64)
		}
	}
	return append(o.b, '}')
}

// appendThreadPool appends the event about the connection pool of a cluster.
func (c *cluster) appendThreadPool(dst []byte, f frame, maxPending uint64) []byte {
	o := object{append(dst, "data: {"...)}
	o.zero("currentPoolSize", "rollingMaxActiveThreads", "currentActiveCount", "currentCompletedTaskCount")
	o.number("propertyValue_queueSizeRejectionThreshold", maxPending)
	o.raw("type", `"HystrixThreadPool"`)
	o.number("reportingHosts", c.hosts)
	o.number("propertyValue_metricsRollingStatisticalWindowInMilliseconds", f.window)
	o.quoted("name", c.quoted)
	o.zero("currentLargestPoolSize", "currentCorePoolSize", "currentQueueSize", "currentTaskCount",
		"rollingCountThreadsExecuted", "currentMaximumPoolSize")
	return append(o.b, "}\n\n"...)
}
