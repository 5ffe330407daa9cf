// Fills the tiles from the event stream, with a line of the requests of the last two
// minutes.

const { parameter } = await import(document.querySelector('script[src$="/admin.js"]').src);

const words = { none: 'no requests', low: 'errors low', errors: 'errors', pause: 'Pause', live: 'Go live', copied: 'Copied' };
const button = document.getElementById('pause');
const tiles = document.getElementById('tiles');
const points = 120;
const byName = new Map([...(tiles?.querySelectorAll('.tile') ?? [])].map((tile) => [tile.dataset.cluster, { tile, past: [] }]));
let source = null;

function draw(line, past) {
  const high = Math.max(...past, 1);
  const at = (v, i) => `${(96 - (past.length - 1 - i) * (96 / (points - 1))).toFixed(1)},${(18.5 - (v / high) * 17).toFixed(1)}`;
  line.setAttribute('points', past.map(at).join(' '));
}

// verdict is the meaning of an event, as the server shows it, in a word.
function verdict(data) {
  if (!data.requestCount) {
    return ['quiet', words.none];
  }
  if (data.errorPercentage < 1 && !data.rollingCountSemaphoreRejected) {
    return ['ok', words.low];
  }
  return [data.errorPercentage < 5 ? 'warn' : 'bad', words.errors];
}

function show(data) {
  const entry = byName.get(data.name);
  if (!entry || data.type !== 'HystrixCommand') {
    return;
  }
  for (const e of entry.tile.querySelectorAll('[data-c]')) {
    const value = e.dataset.c === 'p99' ? data.latencyExecute?.['99'] : data[e.dataset.c];
    if (value !== undefined) {
      const unit = { p99: '\u202Fms', errorPercentage: '\u202F%' }[e.dataset.c] ?? '';
      e.dataset.value = value;
      e.textContent = e.dataset.c === 'errorPercentage' && !data.requestCount ? '–' : Number(value).toLocaleString('en') + unit;
    }
  }
  const [meaning, word] = verdict(data);
  const e = entry.tile.querySelector('.word');
  e.className = `word ${meaning}`;
  e.querySelector('use').setAttribute('href', `#i-${meaning}`);
  e.lastChild.data = word;
  const now = Math.floor(Date.now() / 1000);
  if (now !== entry.second) { // one point a second
    entry.second = now;
    entry.past.push(Number(data.requestCount ?? 0));
    entry.past.splice(0, entry.past.length - points);
    draw(entry.tile.querySelector('polyline'), entry.past);
  }
}

// toggle opens the stream, or closes it while nobody looks or the user has paused it.
function toggle() {
  const paused = parameter('pause') !== '';
  button.textContent = paused ? words.live : words.pause;
  button.setAttribute('aria-pressed', String(paused));
  if (document.hidden || paused) {
    source?.close();
    source = null;
  } else if (source === null) {
    source = new EventSource(tiles.dataset.events);
    source.addEventListener('message', (event) => show(JSON.parse(event.data)));
    source.addEventListener('error', () => {
      if (source?.readyState === EventSource.CLOSED) { // refused: the browser does not try again
        source = null;
        setTimeout(toggle, 5000);
      }
    });
  }
}

const copy = document.getElementById('copy-stream');
if (copy && navigator.clipboard) {
  copy.hidden = false;
  copy.addEventListener('click', async () => {
    await navigator.clipboard.writeText(copy.previousElementSibling.textContent);
    copy.textContent = words.copied;
  });
}
if (tiles?.dataset.events) {
  button.addEventListener('click', () => {
    parameter('pause', parameter('pause') ? '' : '1');
    toggle();
  });
  document.addEventListener('visibilitychange', toggle);
  document.addEventListener('recovered', toggle);
  toggle();
}
