package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/exec-server/exec-server/internal/network"
)

// Source returns the counters of the environments that live, by name. There are as
// many series as environments at a time, times the reasons for denials: names of
// hosts are no labels.
type Source func() map[string]network.Stats

// The series. Counters begin anew with an environment's container, and with the
// server.
var (
	allowed = desc("allowed_total", "Connections and requests that the policy allowed.")
	denied  = desc("denied_total", "Connections, requests and lookups that the policy denied.", "reason")
	open    = desc("connections", "Connections that are open or in the making.")
	inward  = desc("received_bytes_total", "Bytes that the environment has received.")
	outward = desc("sent_bytes_total", "Bytes that the environment has sent.")
	lookups = desc("lookups_total", "Names that were looked up and allowed.")
	failed  = desc("failed_lookups_total", "Lookups that were allowed, and failed: no name server has answered, or resolved it.")
)

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("exec_server_network_"+name, help, append([]string{"environment"}, labels...), nil)
}

// collector is a prometheus.Collector of what a source has.
type collector struct{ source Source }

// Describe implements prometheus.Collector.
func (collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{allowed, denied, open, inward, outward, lookups, failed} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (c collector) Collect(to chan<- prometheus.Metric) {
	count := func(d *prometheus.Desc, kind prometheus.ValueType, n float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, kind, n, labels...)
	}
	for name, s := range c.source() {
		count(allowed, prometheus.CounterValue, float64(s.Total.Allowed), name)
		count(open, prometheus.GaugeValue, float64(s.Open), name)
		count(inward, prometheus.CounterValue, float64(s.Total.In), name)
		count(outward, prometheus.CounterValue, float64(s.Total.Out), name)
		count(lookups, prometheus.CounterValue, float64(s.Lookups), name)
		count(failed, prometheus.CounterValue, float64(s.FailedLookups), name)
		for reason, n := range s.Denied {
			count(denied, prometheus.CounterValue, float64(n), name, string(reason))
		}
	}
}
