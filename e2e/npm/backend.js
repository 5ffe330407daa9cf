// A backend of StatsD for Node.js: writes what it flushes as JSON into the file
// `output` of the configuration. The last flush is at the end of the program.
'use strict';

const fs = require('fs');

exports.init = (startup, config, events) => {
  events.on('flush', (time, metrics) => {
    const sets = {};
    for (const name in metrics.sets) {
      sets[name] = metrics.sets[name].values();
    }
    const { counters, gauges, timers, timer_counters: samples } = metrics;
    fs.writeFileSync(config.output, JSON.stringify({ counters, gauges, timers, samples, sets }));
  });
  return true;
};
