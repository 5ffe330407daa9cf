package top

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// hostStats is the sum of the statistics of a cluster's hosts.
type hostStats struct{ active, requests, total float64 }

// cluster is a row of the clusters.
type cluster struct {
	name           string // untrusted
	healthy, hosts int
	why            string
	hostStats
	rate float64
}

// board has the clusters.
type board struct {
	rows   []cluster
	totals map[string]float64 // requests by cluster
	millis int64              // when they were read
}

// clusterStatuses is the answer of /clusters?format=json.
type clusterStatuses struct {
	Clusters []struct {
		Name  string `json:"name"`
		Hosts []struct {
			Stats []struct {
				Name, Value string
			} `json:"stats"`
			Health map[string]any `json:"health_status"`
		} `json:"host_statuses"`
	} `json:"cluster_statuses"`
}

// readBoard reads the clusters. before is the board of the previous read, or nil.
func readBoard(answer []byte, millis int64, before *board) (*board, error) {
	var in clusterStatuses
	if err := json.Unmarshal(answer, &in); err != nil {
		return nil, fmt.Errorf("malformed answer: %w", err)
	}
	b := &board{totals: make(map[string]float64), millis: millis}
	for _, c := range in.Clusters {
		out := cluster{name: c.Name, hosts: len(c.Hosts)}
		reasons := make(map[string]int)
		for _, h := range c.Hosts {
			if unhealthy(h.Health, reasons) {
				out.healthy--
			}
			out.healthy++
			for _, s := range h.Stats {
				n, _ := strconv.ParseFloat(s.Value, 64)
				switch s.Name {
				case "cx_active":
					out.active += n
				case "rq_active":
					out.requests += n
				case "rq_total":
					out.total += n
				}
			}
		}
		out.why = words(reasons)
		b.totals[c.Name] = out.total
		if before != nil && millis > before.millis {
			if total, ok := before.totals[c.Name]; ok {
				out.rate = max(0, out.total-total) * 1000 / float64(millis-before.millis)
			}
		}
		b.rows = append(b.rows, out)
	}
	slices.SortFunc(b.rows, func(x, y cluster) int {
		return cmp.Or(cmp.Compare(y.down(), x.down()), cmp.Compare(y.hosts-y.healthy, x.hosts-x.healthy), strings.Compare(x.name, y.name))
	})
	return b, nil
}

// down is the share of hosts that are unhealthy.
func (c *cluster) down() float64 { return float64(c.hosts-c.healthy) / float64(max(c.hosts, 1)) }

// unhealthy reports whether a host gets no traffic, and counts the reasons.
func unhealthy(health map[string]any, reasons map[string]int) (is bool) {
	for name, value := range health {
		switch name {
		case "eds_health_status":
			if word, _ := value.(string); word != "HEALTHY" && word != "DEGRADED" && word != "UNKNOWN" {
				reasons["discovery says "+strings.ToLower(word)]++
				is = true
			}
		case "failed_active_health_check", "failed_outlier_check", "excluded_via_immediate_hc_fail":
			if value == true {
				reasons[strings.ReplaceAll(name, "_", " ")]++
				is = true
			}
		}
	}
	return is
}

// words returns the reasons with their numbers, the most frequent first.
func words(reasons map[string]int) string {
	list := slices.SortedFunc(maps.Keys(reasons), func(a, b string) int {
		return cmp.Or(cmp.Compare(reasons[b], reasons[a]), strings.Compare(a, b))
	})
	for i, name := range list {
		list[i] = fmt.Sprintf("%d %s", reasons[name], name)
	}
	return strings.Join(list, ", ")
}
