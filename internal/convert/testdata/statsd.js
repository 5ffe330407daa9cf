/*
  A server in front of Graphite, with a second one that gets all packets.
*/
{
  port: 8125
, address: "127.0.0.1"
, servers: [
    { server: "./servers/udp", address: '0.0.0.0', port: 8125 },
    { server: "./servers/tcp", address: "127.0.0.1", port: 0x1fbd },
    { server: './servers/tcp', socket: "/run/statsd/statsd.sock", socket_mod: '0660', },
  ]
, mgmt_port: 8126
, flushInterval: 1e4 // ten seconds
, percentThreshold: [50, 95, 99.9, -10]
, backends: [ "./backends/graphite", "./backends/console", "./backends/repeater", "statsd-cloudwatch-backend" ]
, graphiteHost: "graphite.example.com"
, graphitePort: 2003
, graphite: { legacyNamespace: false, globalPrefix: "prod", prefixGauge: "gauges" }
, repeater: [ { host: "10.1.1.10", port: 8125 }, { host: "observer", port: 8125 } ]
, repeaterProtocol: 'udp4'
, deleteIdleStats: true
, deleteCounters: false, deleteTimers: false
, keyNameSanitize: true
, histogram: [ { metric: 'render', bins: [ 0.01, 0.1, 1, 10, 'inf' ] } ]
, prefixStats: "statsd"
, "colour": null, shade: `dark`
}
