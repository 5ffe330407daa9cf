// All pages work without scripts. With them, forms leave out fields that are empty
// or have their default, requests that change the server are confirmed, filters work
// while they are typed, and the keyboard reaches everything.

const words = {
  ask: (request) => `Send POST ${request}?`,
  type: (allowed) => `This cannot be undone. Type ${allowed.join(' or ')} to continue.`,
  cancel: 'Cancel',
  send: 'Send',
  close: 'Close',
  copied: 'Copied',
  shortcuts: 'Keyboard shortcuts',
  keys: [['/', 'focus the filter'], ['Esc', 'leave a field, close a dialog'], ['j k', 'next and previous row'], ['Enter', 'open the row'],
    ['[ ]', 'previous and next page'], ['1 … 9', 'sort by that column'], ['c', 'copy the table'], ['n', 'refresh'], ['p', 'pause or go live'], ['?', 'this help']],
  goTo: (page) => `go to ${page}`,
  off: 'Shortcuts are on',
  pause: 'Pause',
  live: 'Go live',
  stale: (age) => `No update for ${age} s. The values are old; the connection is tried again.`,
};

const root = document.documentElement;
const all = (selector, from = document) => [...from.querySelectorAll(selector)];
const element = (name, properties = {}, ...children) => {
  const e = document.createElement(name);
  Object.assign(e, properties);
  e.append(...children);
  return e;
};
const stored = (name, value) => {
  try {
    if (value === undefined) {
      return localStorage.getItem(name);
    }
    localStorage.setItem(name, value);
  } catch { /* storage is off: the choice lasts as long as the page */ }
  return null;
};

// show opens a dialog and returns it. It is removed when it closes.
function show(id, title, content, focused) {
  const heading = element('h2', { id: `${id}-title`, textContent: title });
  const dialog = element('dialog', { id }, content);
  content.prepend(heading);
  dialog.setAttribute('aria-labelledby', heading.id);
  dialog.addEventListener('close', () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  focused.focus();
  return dialog;
}

// confirmed resolves to whether the user agrees to a request. effects are sentences
// about it. Where some words are allowed, one of them must be typed.
function confirmed(request, effects, allowed) {
  return new Promise((resolve) => {
    const cancel = element('button', { type: 'button', textContent: words.cancel });
    const send = element('button', { type: 'submit', textContent: words.send, className: 'mutation' });
    const form = element('form', { method: 'dialog' });
    if (effects.length > 0) {
      form.append(element('ul', {}, ...effects.map((textContent) => element('li', { textContent }))));
    }
    let input = null;
    if (allowed.length > 0) {
      send.classList.add('destructive');
      input = element('input', { type: 'text', id: 'confirm-word', autocomplete: 'off' });
      form.append(element('label', { htmlFor: input.id, textContent: words.type(allowed) }), input);
      send.disabled = true;
      input.addEventListener('input', () => { send.disabled = !allowed.includes(input.value); });
    }
    form.append(element('div', { className: 'choices' }, cancel, send));
    let agreed = false;
    const dialog = show('confirm', words.ask(request), form, input ?? cancel);
    cancel.addEventListener('click', () => dialog.close());
    form.addEventListener('submit', (event) => {
      if (input !== null && !allowed.includes(input.value)) {
        event.preventDefault();
        return;
      }
      agreed = true;
    });
    dialog.addEventListener('close', () => resolve(agreed));
  });
}

// described returns the request of a form and what it and its options do, in words.
function described(form) {
  const path = form.getAttribute('action').replace(/^(\.\.\/)+/, '');
  const set = [...new FormData(form)].map(([name, value]) => {
    const field = [...form.elements].find((e) => e.name === name);
    return field && field.type === 'checkbox' ? name : `${name}=${value}`;
  });
  const effects = form.dataset.effect ? [form.dataset.effect] : [];
  for (const e of form.elements) {
    if (e.type === 'checkbox' && e.checked) {
      const help = (e.closest('label') ?? e.parentElement).querySelector('.quiet');
      effects.push(`${e.name}: ${help ? help.textContent.trim() : ''}`);
    }
  }
  return [set.length > 0 ? `${path}?${set.join('&')}` : path, effects];
}

function prepare(form) {
  const posts = form.getAttribute('method') === 'post';
  form.addEventListener('formdata', (event) => {
    for (const e of form.elements) {
      const initial = !posts && e.localName === 'select' ? e.options[0].value : '';
      const data = 'keep' in form.dataset; // an empty value means something
      if (e.name && !data && (e.value === '' || e.value === initial)) {
        event.formData.delete(e.name);
      }
    }
    // A parameter whose name is typed: its value counts even if it is empty.
    const [key, value] = ['key', 'value'].map((part) => [...form.elements].find((e) => e.dataset.pair === part));
    if (key && key.value !== '') {
      event.formData.append(key.value, value.value);
    }
  });
  if (!posts) {
    return;
  }
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    const opener = event.submitter;
    const allowed = [form.dataset.word, form.dataset.node].filter((word) => word);
    if (await confirmed(...described(form), form.dataset.word ? allowed : [])) {
      form.submit();
    } else if (opener !== null) {
      opener.focus();
    }
  });
  if (form.dataset.submit === 'change') {
    form.querySelector('button').hidden = true;
    const select = form.querySelector('select');
    const before = select.value;
    select.addEventListener('change', async () => {
      if (await confirmed(...described(form), [])) {
        form.submit();
      } else {
        select.value = before;
        select.focus();
      }
    });
  }
}

// localTimes shows times in the time zone of the browser; UTC stays in the title.
function localTimes(from) {
  const two = (n) => String(n).padStart(2, '0');
  for (const e of all('time[datetime]', from)) {
    const t = new Date(e.dateTime);
    e.textContent = `${t.getFullYear()}-${two(t.getMonth() + 1)}-${two(t.getDate())} ${two(t.getHours())}:${two(t.getMinutes())}:${two(t.getSeconds())}`;
  }
}

// page fetches a view as a document. Documents of XMLHttpRequest run no scripts.
function page(url) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.responseType = 'document';
    request.addEventListener('load', () => resolve(request.response));
    request.addEventListener('error', () => reject(new Error('no answer')));
    request.open('GET', url);
    request.send();
  });
}

// replace shows a part of the view at url in place of the present one.
let latest = '';
async function replace(id, url) {
  const old = document.getElementById(id);
  latest = url;
  old.setAttribute('aria-busy', 'true');
  try {
    const fresh = (await page(url))?.getElementById(id);
    if (fresh && latest === url) {
      const part = document.importNode(fresh, true);
      document.getElementById(id).replaceWith(part);
      enliven(part);
      document.dispatchEvent(new Event('replaced'));
    }
  } catch {
    old.removeAttribute('aria-busy'); // the old values stay
  }
}

// live makes a filter form work while it is used.
function live(form) {
  const id = form.dataset.live;
  let timer = 0;
  const update = () => {
    const query = [...new FormData(form)].map((pair) => pair.map(encodeURIComponent).join('=')).join('&');
    const url = form.getAttribute('action') + (query ? `?${query}` : '');
    history.replaceState(null, '', url);
    replace(id, url);
  };
  form.addEventListener('input', (event) => {
    clearTimeout(timer);
    timer = setTimeout(update, event.target.type === 'search' ? 120 : 0);
  });
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    clearTimeout(timer);
    update();
  });
}

// enliven prepares a part of the page.
function enliven(from) {
  for (const form of all('form', from)) {
    prepare(form);
    if (form.dataset.live) {
      live(form);
    }
  }
  localTimes(from);
  for (const link of all('[data-copy]', from)) {
    link.addEventListener('click', async (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey || !navigator.clipboard) {
        return;
      }
      event.preventDefault();
      await navigator.clipboard.writeText(await (await fetch(link.href)).text());
      const label = link.textContent;
      link.textContent = words.copied;
      setTimeout(() => { link.textContent = label; }, 1500);
    });
  }
  for (const plot of all('svg.plot[data-bins]', from)) {
    walkBins(plot);
  }
}

// walkBins lets the arrow keys walk over the bins of a plot and reads them out.
function walkBins(plot) {
  const rows = all(`#${plot.dataset.bins} tbody tr`);
  const heads = all(`#${plot.dataset.bins} thead th`).map((e) => e.textContent);
  let at = -1;
  plot.addEventListener('keydown', (event) => {
    const steps = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: rows.length - 1 };
    if (!(event.key in steps) || rows.length === 0) {
      return;
    }
    event.preventDefault();
    at = Math.min(Math.max(steps[event.key], 0), rows.length - 1);
    for (const row of rows) {
      row.classList.toggle('sel', row === rows[at]);
    }
    document.getElementById('bin').textContent = [...rows[at].cells].map((c, i) => `${heads[i]} ${c.textContent}`).join(', ');
  });
}

// circuits fills the tiles from the event stream.
function circuits() {
  const tiles = document.getElementById('tiles');
  if (!tiles?.dataset.stream) {
    return;
  }
  const byName = new Map(all('.tile', tiles).map((tile) => [tile.dataset.cluster, tile]));
  let source = null;
  const open = () => {
    source = new EventSource(tiles.dataset.stream);
    source.addEventListener('message', (event) => {
      const data = JSON.parse(event.data);
      const tile = byName.get(data.name);
      if (!tile || data.type !== 'HystrixCommand') {
        return;
      }
      for (const e of all('[data-c]', tile)) {
        const value = e.dataset.c === 'p99' ? data.latencyExecute?.['99'] : data[e.dataset.c];
        if (value !== undefined) {
          const unit = { p99: '\u202Fms', errorPercentage: '\u202F%' }[e.dataset.c] ?? '';
          e.textContent = Number(value).toLocaleString('en') + unit;
        }
      }
    });
  };
  const toggle = () => {
    if (document.hidden) {
      source?.close();
      source = null;
    } else if (source === null) {
      open();
    }
  };
  document.addEventListener('visibilitychange', toggle);
  toggle();
}

// Stats that move. The stream names each stat once and then sends what changed.
const svg = (name, attributes, ...children) => {
  const e = document.createElementNS(document.querySelector('svg').namespaceURI, name);
  for (const [key, value] of Object.entries(attributes)) {
    e.setAttribute(key, value);
  }
  e.append(...children);
  return e;
};
const grouped = (n) => {
  const text = String(n).replace('-', '\u2212');
  const [whole, rest] = text.split(/(?=[.e])/);
  return whole.replace(/\B(?=(\d{3})+$)/g, ',') + (rest ?? '');
};
const perSecond = (x) => (x === 0 || x >= 10000 ? grouped(Math.round(x)) : grouped(x.toFixed(1)));
const points = 60;

// sparkline draws values with the time between them. Counters start at zero, gauges
// span their range, but at least a tenth of the value, so that noise stays flat.
function sparkline(values, fromZero) {
  const high = Math.max(...values);
  let low = fromZero ? 0 : Math.min(...values);
  const span = Math.max(high - low, fromZero ? 1e-9 : Math.abs(high) * 0.1, 1e-9);
  low = fromZero ? 0 : (high + low) / 2 - span / 2;
  const at = (v, i) => `${(96 - (values.length - 1 - i) * (96 / (points - 1))).toFixed(1)},${(18.5 - ((v - low) / span) * 17).toFixed(1)}`;
  return svg('svg', { class: 's', viewBox: '0 0 96 20', preserveAspectRatio: 'none', 'aria-hidden': 'true' }, svg('polyline', { class: 'ln', points: values.map(at).join(' ') }));
}

// Line is the past of a value in steps of one length; the last one grows. It begins
// with the points that the server has put into the element, as values and counts.
class Line {
  constructor(e) {
    this.past = (e?.dataset.points ?? '').split(' ').filter(Boolean).flatMap((run) => {
      const [value, count] = run.split('*');
      return Array(Number(count ?? 1)).fill(Number(value));
    });
    this.step = Number(e?.dataset.step ?? 1000);
    this.elapsed = 0;
    this.sum = 0;
  }

  add(value, ms, last) {
    this.elapsed += ms;
    this.sum += value * ms;
    this.now = last ? value : this.sum / this.elapsed;
    if (this.elapsed + ms / 2 >= this.step) {
      this.past.push(this.now);
      this.past.splice(0, this.past.length - points);
      this.elapsed = 0;
      this.sum = 0;
    }
  }

  draw(e, fromZero) {
    const list = this.elapsed > 0 ? [...this.past, this.now].slice(-points) : this.past;
    if (list.length > 1) {
      e.replaceChildren(sparkline(list, fromZero));
    }
  }
}

class Live {
  constructor(main) {
    this.main = main;
    this.button = document.getElementById('pause');
    this.bar = document.getElementById('connection');
    this.series = new Map(); // by name: kind, value, rate, line
    this.sums = new Map(); // lines by the prefix of the names
    this.names = new Map(); // by id
    this.source = null;
    this.paused = false;
    this.last = 0;
    this.interval = 1000;
    this.button.hidden = false;
    this.button.addEventListener('click', () => this.pause(!this.paused));
    document.addEventListener('visibilitychange', () => this.toggle());
    document.addEventListener('replaced', () => { this.series.clear(); this.sums.clear(); this.names.clear(); this.close(); this.toggle(); });
    setInterval(() => this.check(), 1000);
    this.toggle();
  }

  pause(paused) {
    this.paused = paused;
    this.button.textContent = paused ? words.live : words.pause;
    this.button.setAttribute('aria-pressed', String(paused));
    this.toggle();
  }

  toggle() {
    if (document.hidden || this.paused) {
      this.close();
    } else if (this.source === null) {
      this.open();
    }
  }

  close() {
    this.source?.close();
    this.source = null;
    this.bar.hidden = true;
  }

  open() {
    // What changed while nothing was read is not sent again, so begin with all values.
    this.names.clear();
    this.last = Date.now();
    this.source = new EventSource(document.querySelector('[data-stream-filter]').dataset.streamFilter);
    this.source.addEventListener('reset', () => this.heard());
    this.source.addEventListener('delta', (event) => this.delta(JSON.parse(event.data)));
  }

  heard() {
    this.last = Date.now();
    this.bar.hidden = true;
    this.main.classList.remove('stale');
  }

  // check says how old the values are once three events are missing. Nothing is sent
  // while no stat changes, so only a broken connection counts.
  check() {
    if (this.source === null || this.source.readyState === EventSource.OPEN) {
      return;
    }
    const age = Math.round((Date.now() - this.last) / 1000);
    if (age >= 3) {
      this.bar.hidden = false;
      this.bar.querySelector('p').textContent = words.stale(age);
      this.main.classList.add('stale');
    }
    if (this.source.readyState === EventSource.CLOSED && age % 5 === 0) {
      this.source = null;
      const { last } = this;
      this.open();
      this.last = last;
    }
  }

  delta(data) {
    this.heard();
    const sparks = new Map(data.new ? all('[data-spark]', this.main).map((e) => [e.dataset.spark, e]) : []);
    for (const [id, kind, name] of data.new ?? []) {
      this.names.set(id, name);
      if (!this.series.has(name)) {
        this.series.set(name, { kind, value: 0, rate: 0, line: new Line(sparks.get(name)), seq: 0 });
      }
    }
    for (const [id, value, rate, quantiles] of data.rows ?? []) {
      const s = this.series.get(this.names.get(id));
      if (s) {
        Object.assign(s, { value, rate: data.interval_ms > 0 ? rate : s.rate, quantiles, seq: data.seq });
      }
    }
    if (data.more) {
      return;
    }
    for (const s of this.series.values()) {
      if (s.seq !== data.seq) {
        s.rate = 0;
      }
      if (data.interval_ms > 0 && s.kind !== 'text') {
        s.line.add(s.kind === 'gauge' ? Number(s.value) : s.rate, data.interval_ms, s.kind === 'gauge');
      }
    }
    this.paint(data.seq, data.interval_ms);
  }

  paint(seq, ms) {
    for (const e of all('[data-stat]', this.main)) {
      const s = this.series.get(e.dataset.stat);
      if (s && s.seq === seq) {
        const text = s.kind === 'text' ? s.value : e.dataset.unit === 'MiB' ? (s.value / 2 ** 20).toFixed(1) : grouped(s.value);
        if (e.textContent !== text) {
          e.textContent = text;
          e.classList.remove('quiet');
          e.closest('[data-value]')?.setAttribute('data-value', s.value);
        }
      }
    }
    for (const e of all('[data-rate]', this.main)) {
      const s = this.series.get(e.dataset.rate);
      if (s && s.kind !== 'gauge' && s.kind !== 'text') {
        e.textContent = perSecond(s.rate);
      }
    }
    for (const e of all('[data-spark]', this.main)) {
      const s = this.series.get(e.dataset.spark);
      if (s && s.kind !== 'histogram') {
        s.line.draw(e, s.kind === 'counter');
      }
    }
    // Sums over all stats whose names begin alike: the value, the rate, a line.
    for (const e of all('[data-sum]', this.main)) {
      const list = [...this.series].filter(([name]) => name.startsWith(e.dataset.sum)).map(([, s]) => s);
      if (list.length === 0) {
        continue;
      }
      e.textContent = grouped(list.reduce((sum, s) => sum + Number(s.value), 0));
      const rate = list.reduce((sum, s) => sum + s.rate, 0);
      const box = e.closest('div');
      box.querySelector('.persecond').textContent = `${perSecond(rate)} /s`;
      const spark = box.querySelector('.spark');
      const line = this.sums.get(e.dataset.sum) ?? new Line(spark);
      this.sums.set(e.dataset.sum, line);
      if (ms > 0) {
        line.add(rate, ms, false);
      }
      line.draw(spark, true);
    }
  }
}

// Theme
for (const input of all('input[name="theme"]')) {
  input.checked = input.value === (stored('theme') ?? 'auto');
  input.addEventListener('change', () => {
    stored('theme', input.value);
    if (input.value === 'auto') {
      delete root.dataset.theme;
    } else {
      root.dataset.theme = input.value;
    }
  });
}

// Keyboard
function help() {
  const on = element('input', { type: 'checkbox', checked: stored('shortcuts') !== 'off' });
  on.addEventListener('change', () => stored('shortcuts', on.checked ? 'on' : 'off'));
  const list = element('dl');
  const pages = all('nav a[data-key]').map((a) => [`g ${a.dataset.key}`, words.goTo(a.firstChild.textContent)]);
  for (const [key, what] of [...words.keys, ...pages]) {
    list.append(element('dt', {}, element('kbd', { textContent: key })), element('dd', { textContent: what }));
  }
  const close = element('button', { type: 'submit', textContent: words.close });
  const form = element('form', { method: 'dialog' }, list, element('label', { className: 'check' }, on, ` ${words.off}`), element('div', { className: 'choices' }, close));
  const opener = document.activeElement;
  show('help', words.shortcuts, form, close).addEventListener('close', () => opener?.focus());
}
document.getElementById('help-button')?.addEventListener('click', help);

const links = () => all('main tbody tr :is(th, td):first-child a, .list a, .pick li a');
let going = false;
const actions = {
  '/': () => document.querySelector('main input[type="search"]')?.focus(),
  '?': help,
  j: () => step(1),
  k: () => step(-1),
  n: () => location.reload(),
  p: () => document.querySelector('#pause:not([hidden])')?.click(),
  c: () => document.querySelector('main [data-copy]')?.click(),
  '[': () => document.querySelector('a[rel="prev"]')?.click(),
  ']': () => document.querySelector('a[rel="next"]')?.click(),
};
function step(by) {
  const list = links();
  list[Math.min(Math.max(list.indexOf(document.activeElement) + by, 0), list.length - 1)]?.focus();
}
document.addEventListener('keydown', (event) => {
  const typing = event.target.closest?.('input:not([type="checkbox"], [type="radio"]), select, textarea, dialog');
  if (event.key === 'Escape' && typing && !event.target.closest('dialog')) {
    event.target.blur();
  }
  if (typing || event.ctrlKey || event.metaKey || event.altKey || event.isComposing || stored('shortcuts') === 'off') {
    return;
  }
  if (going) {
    going = false;
    document.querySelector(`nav a[data-key="${CSS.escape(event.key)}"]`)?.click();
    return;
  }
  if (event.key === 'g') {
    going = true;
    return;
  }
  const column = Number(event.key);
  const action = column > 0 ? () => all('main thead th')[column - 1]?.querySelector('a')?.click() : actions[event.key];
  if (action) {
    event.preventDefault();
    action();
  }
});

document.querySelector('nav [aria-current]')?.scrollIntoView({ inline: 'center', block: 'nearest' });
enliven(document);
circuits();
if (document.querySelector('[data-stream-filter]')) {
  new Live(document.getElementById('main'));
}
root.dataset.ready = 'yes';
