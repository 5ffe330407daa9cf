{
nodes: [
{host: '127.0.0.1', port: 8127, adminport: 8128},
{host: '127.0.0.1', port: 8129, adminport: 8130},
{host: 'third', port: 8131}
],
server: './servers/udp',
udp_version: 'udp4',
host:  '0.0.0.0',
port: 8125,
forkCount: 0,
checkInterval: 1000,
cacheSize: 10000
}
