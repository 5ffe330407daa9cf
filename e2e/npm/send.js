// Sends the same stats with one of two StatsD clients:
//
//     node send.js hot-shots udp|tcp|unixgram|unixlines ADDRESS all|set
//     node send.js statsd-client udp|tcp ADDRESS all|set
//
// ADDRESS is host:port or a path. With all it prints how many lines it sent as
// JSON, without those of a counter that hot-shots samples by chance; with set it sends the members of a set until its standard input ends.
'use strict';

const net = require('net');

const increments = 3000;
const sampled = 1000;
const timings = 300;
const members = 50;

const [library, transport, address, what] = process.argv.slice(2);
const colon = address.lastIndexOf(':');
const host = address.slice(0, colon);
const port = Number(address.slice(colon + 1));

let lines = 0;

function fail(err) {
  if (err) {
    console.error(err);
    process.exit(1);
  }
}

let ended = false;
process.stdin.on('end', () => { ended = true; });

// sets sends all members again and again, so that every interval has them all.
async function sets(client) {
  process.stdin.resume();
  while (!ended) {
    for (let i = 0; i < members; i++) {
      client.set('users', 'u' + i);
    }
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

// settle waits until the event loop had time to send.
const settle = () => new Promise((resolve) => setTimeout(resolve, 100));

async function hotShots() {
  const StatsD = require('hot-shots');
  const options = { prefix: 'shop.', globalTags: { env: 'test' }, errorHandler: fail };
  switch (transport) {
    case 'unixgram':
      Object.assign(options, { protocol: 'uds', path: address, udsRetryOptions: { retries: 20, retryDelayMs: 5 } });
      break;
    case 'unixlines':
      Object.assign(options, { protocol: 'stream', stream: net.connect(address) });
      break;
    default:
      Object.assign(options, { protocol: transport, host, port });
  }
  const client = new StatsD(options);
  const close = () => new Promise((resolve) => client.close((err) => { fail(err); resolve(); }));
  if (what === 'set') {
    await sets(client);
    return close();
  }
  let pending = 0;
  const sent = () => {
    lines++;
    pending++;
    return (err) => {
      fail(err);
      pending--;
    };
  };
  // A few lines at a time, as a program that does its work in between.
  const drain = async () => {
    while (pending > 0) {
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  for (let i = 0; i < increments; i++) {
    client.increment('orders', 1, { host: 'h' + (i % 10) }, sent());
    if (i % 8 === 7) {
      await drain();
    }
  }
  for (let i = 0; i < sampled; i++) {
    client.increment('sampled', 1, 0.5);
    if (i % 8 === 7) {
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
  await drain();
  for (let i = 0; i < timings; i++) {
    const v = i % 100 + 1;
    client.timing('latency', v, sent());
    client.histogram('size', v, sent());
    client.distribution('spread', v, sent());
    await drain();
  }
  client.gauge('temperature', 17.5, sent());
  client.gaugeDelta('temperature', -2, sent());
  await drain();
  if (transport !== 'unixlines' && transport !== 'tcp') {
    for (const kind of ['info', 'success', 'warning', 'error']) {
      client.event('title | of it', 'two\nlines', { alert_type: kind }, sent());
    }
    for (const status of ['OK', 'WARNING', 'CRITICAL', 'UNKNOWN', 'OK']) {
      client.check('database', client.CHECKS[status], { message: 'all is said' }, sent());
    }
    await drain();
  }
  return close();
}

async function statsdClient() {
  const StatsD = require('statsd-client');
  // The client loses what it sends while it closes a socket that was not in use
  // for this long, so that must not happen in between. In the end, closing sends
  // what it holds.
  const client = new StatsD({
    host, port, tcp: transport === 'tcp', prefix: 'shop', tags: { env: 'test' },
    maxBufferSize: transport === 'tcp' ? 0 : 1200, socketTimeout: 600_000,
  });
  if (what === 'set') {
    await sets(client);
    client.close();
    return;
  }
  for (let i = 0; i < increments; i++) {
    client.increment('orders', 1, { host: 'h' + (i % 10) });
    lines++;
    if (i % 500 === 499) {
      await settle();
    }
  }
  for (let i = 0; i < timings; i++) {
    const v = i % 100 + 1;
    client.timing('latency', v);
    client.histogram('size', v);
    client.distribution('spread', v);
    lines += 3;
  }
  client.gauge('temperature', 17.5);
  client.gaugeDelta('temperature', -2);
  lines += 2;
  await settle();
  client.close();
  await settle();
}

(library === 'hot-shots' ? hotShots() : statsdClient()).then(() => {
  if (what === 'all') {
    console.log(JSON.stringify({ lines }));
  }
}, fail);
