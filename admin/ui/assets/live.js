// Stats that move. The stream names each stat once and then sends what changed.
const module = (name) => import(document.querySelector(`script[src$="/${name}"]`).src);
const { all, parameter, put, grouped, perSecond, figures, age } = await module('admin.js');
const { Line } = await module('past.js');
const { streaming } = await module('watch.js');

const words = {
  pause: 'Pause',
  live: 'Go live',
  none: '–',
  quantiles: 'quantiles of the last interval with values',
};

const quiet = (e, zero) => {
  if (e.zero !== zero) {
    e.zero = zero;
    e.classList.toggle('quiet', zero);
  }
};
const cellOf = (e) => {
  e.cell ??= e.closest('[data-value]');
  return e.cell;
};
const near = 200; // pixels around the window

// difference returns the exact difference of two numbers, which are texts from 2^53 on.
const whole = (x) => /^-?\d+$/.test(x);
function difference(now, base) {
  const [a, b] = [String(now), String(base)];
  if (a.length < 16 && b.length < 16 && Number.isInteger(+a - +b)) {
    return String(a - b);
  }
  return whole(a) && whole(b) ? String(BigInt(a) - BigInt(b)) : String(Number((Number(a) - Number(b)).toPrecision(12)));
}
const signed = (change) => (change === '0' || change.startsWith('-') ? grouped(change) : `+${grouped(change)}`);

const parts = ['quantiles', 'rate', 'spark', 'delta', 'changed'];

class Live {
  constructor(main) {
    this.main = main;
    this.button = document.getElementById('pause');
    this.series = new Map(); // by name: kind, value, rate, line
    this.sums = new Map(); // lines by the prefix of the names
    this.names = new Map(); // by id
    this.bases = new Map(); // by name: the value at the zero point
    this.source = null;
    this.paused = parameter('pause') !== '';
    this.time = 0; // of the server, in milliseconds
    this.lost = 0; // milliseconds that its clock was set back
    this.button.addEventListener('click', () => {
      parameter('pause', this.paused ? '' : '1');
      this.pause(!this.paused);
    });
    this.behind = new Set(); // names whose rows out of view show older values
    for (const event of ['scroll', 'resize', 'copy', 'beforeprint']) {
      window.addEventListener(event, () => {
        this.look();
        this.catchUp(event === 'beforeprint');
      }, { capture: true, passive: true });
    }
    document.addEventListener('keydown', (event) => { // find in page
      if (event.ctrlKey || event.metaKey || event.key === 'F3') {
        this.catchUp();
      }
    });
    document.addEventListener('visibilitychange', () => this.toggle());
    document.addEventListener('replaced', () => this.renew());
    document.addEventListener('recovered', () => this.again());
    document.addEventListener('every', () => this.renew());
    this.seen = new Set(); // names whose rows are in view
    this.collect();
    this.pause(this.paused);
  }

  // renew follows the stats of a view that has replaced another one.
  renew() {
    this.collect();
    this.sums.clear();
    for (const [name, s] of this.series) {
      const { spark } = this.cells.get(name) ?? {};
      if (!spark && !this.totals.some((e) => name.startsWith(e.dataset.sum))) {
        this.series.delete(name);
      } else if (spark?.length > 0) { // the page knows more than the stream that begins
        s.line = new Line(spark[0]);
      }
    }
    if (this.paused !== (parameter('pause') !== '')) {
      this.pause(!this.paused);
      return;
    }
    this.close();
    this.toggle();
  }

  // collect finds the places of numbers in the page, by the names of their stats.
  collect() {
    this.cells = new Map();
    this.behind.clear();
    const key = document.getElementById('since') ? parameter('zero') : '';
    const held = key && sessionStorage.getItem('zero') ? JSON.parse(sessionStorage.getItem('zero')) : {};
    if (key !== this.zero) {
      this.bases.clear();
      this.zero = key;
    }
    this.rows = all('#stats .pin', this.main).map((pin) => pin.closest('tr'));
    this.seen.clear();
    const cellsOf = (name) => {
      let cells = this.cells.get(name);
      if (!cells) { // for each of many rows: a literal takes a tenth of the time of a loop
        cells = { rows: [], stat: [], quantiles: [], rate: [], spark: [], delta: [], changed: [] };
        this.cells.set(name, cells);
      }
      return cells;
    };
    for (const row of this.rows) {
      const e = row.querySelector('[data-stat]');
      row.of = e?.dataset.stat; // none if it is gone
      if (e) {
        const cells = cellsOf(row.of);
        cells.stat.push(e);
        cells.rows.push(row);
      }
    }
    for (const what of this.rows.length > 0 ? [] : ['stat', ...parts]) {
      all(`[data-${what}]`, this.main).forEach((e) => cellsOf(e.dataset[what])[what].push(e));
    }
    this.totals = all('[data-sum]', this.main);
    for (const name of this.main.querySelector('[data-delta]') ? this.cells.keys() : []) {
      const value = this.exact(name);
      const base = this.bases.get(name) ?? (held.zero === key ? held.values?.[name] : undefined) ?? (key ? this.at(name).delta[0]?.dataset.base : value);
      if (base !== undefined) {
        this.bases.set(name, base);
        if (base !== value || key) { // else it is shown as zero
          this.change(this.at(name), name, value);
        }
      }
    }
  }

  // at returns the places of a stat. Its rows are searched when the first is needed.
  at(name) {
    const cells = this.cells.get(name);
    for (const row of cells?.rows.splice(0) ?? []) {
      parts.forEach((what) => cells[what].push(...all(`[data-${what}]`, row)));
    }
    return cells;
  }

  // look finds the rows in view and paints each that was not. Rows are in order, so that
  // few have to be measured.
  look() {
    const first = (y) => { // row that ends below
      let [from, to] = [0, this.rows.length];
      while (from < to) {
        const middle = (from + to) >> 1;
        [from, to] = this.rows[middle].getBoundingClientRect().bottom > y ? [from, middle] : [middle + 1, to];
      }
      return from;
    };
    const before = this.seen;
    this.seen = new Set(this.rows.slice(first(-near), first(window.innerHeight + near)).map((row) => row.of));
    for (const name of this.seen) {
      if (!before.has(name) && this.series.get(name)?.seq > 0) {
        this.bring(name, true);
      }
    }
  }

  // bring brings the rows of a stat up to date.
  bring(name, draw) {
    const [s, cells] = [this.series.get(name), this.at(name)];
    this.behind.delete(name);
    if (s && cells) {
      this.paintOne(name, s, cells, true, draw);
    }
  }

  // catchUp brings rows out of view up to date: all before they can be seen, and a few,
  // the oldest, in each interval. The browser skips them meanwhile.
  catchUp(draw, most = this.behind.size) {
    for (const name of [...this.behind].slice(0, most)) {
      this.bring(name, draw);
    }
  }

  // exact returns the value of a stat that the page shows, as text.
  exact(name) {
    return String(this.series.get(name)?.value ?? this.cells.get(name)?.stat[0]?.closest('[data-value]')?.dataset.value ?? '0');
  }

  change(cells, name, value, counter) {
    const base = this.bases.get(name);
    if (base === undefined) {
      return;
    }
    let change = difference(value, base);
    if (counter && change.startsWith('-')) { // reset while the stream was not open
      this.bases.set(name, '0');
      change = String(value);
    }
    for (const e of cells.delta) {
      put(e, signed(change));
      quiet(e, change === '0');
      cellOf(e)?.setAttribute('data-value', change);
    }
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
      this.away = true;
    } else if (this.source === null) {
      if (this.away) {
        this.away = false;
        this.forget();
      }
      this.open();
    }
  }

  // forget drops rates: after a time without the stream the old ones are wrong.
  forget() {
    for (const [name, s] of this.series) {
      s.rate = undefined;
      for (const e of this.at(name)?.rate ?? []) {
        put(e, words.none);
      }
    }
  }

  close() {
    clearTimeout(this.timer);
    this.source?.close();
    this.source = null;
    streaming(true);
  }

  open() {
    // What changed while nothing was read is not sent again, so begin with all values.
    this.names.clear();
    const from = document.querySelector('[data-stream-filter]');
    if (!from?.dataset.streamFilter) {
      return;
    }
    const every = parameter('every');
    this.source = new EventSource(from.dataset.streamFilter + (every ? `&interval_ms=${every * 1000}` : ''));
    this.source.addEventListener('open', () => streaming(true));
    this.source.addEventListener('error', () => streaming(false));
    this.source.addEventListener('reset', (event) => this.reset(JSON.parse(event.data)));
    this.source.addEventListener('delta', (event) => this.delta(JSON.parse(event.data)));
  }

  // again connects again, unless the connection stands.
  again() {
    if (this.source !== null && this.source.readyState !== EventSource.OPEN) {
      this.source.close();
      this.source = null;
      this.toggle();
    }
  }

  reset(data) {
    if (data.reason === 'counters') {
      for (const [name, s] of this.series) {
        if (s.kind === 'counter') {
          this.bases.set(name, '0');
        }
      }
    }
  }

  delta(data) {
    if (data.t + this.lost < this.time - 60000) {
      this.lost = this.time + data.interval_ms - data.t;
    }
    this.time = data.t + this.lost;
    for (const [id, kind, name, created] of data.new ?? []) {
      this.names.set(id, name);
      if (!this.series.has(name)) {
        const cells = this.cells.get(name);
        this.series.set(name, { kind, value: 0, line: new Line(cells?.spark[0] ?? cells?.rows[0]?.querySelector('[data-spark]')), seq: 0, created });
      }
    }
    for (const id of data.gone ?? []) {
      this.gone(this.names.get(id));
      this.names.delete(id);
    }
    for (const [id, value, rate, quantiles] of data.rows ?? []) {
      const s = this.series.get(this.names.get(id));
      if (s) {
        if ((s.seq !== 0 || data.interval_ms > 0) && String(value) !== String(s.value)) {
          s.gap = s.at ? this.time - s.at : s.gap;
          s.at = this.time;
        }
        s.value = value;
        s.quantiles = quantiles ?? s.quantiles;
        s.rate = data.interval_ms > 0 ? rate : s.rate;
        s.seq = data.seq;
      }
    }
    if (data.more) {
      return;
    }
    this.pass(data.seq, data.interval_ms);
    this.await(data.interval_ms);
  }

  // await ends intervals without an event: the server sends none if nothing has changed.
  await(ms, wait = 1.5) {
    clearTimeout(this.timer);
    const every = Math.max(ms, parameter('every') * 1000, 1000);
    this.timer = setTimeout(() => {
      if (this.source?.readyState === EventSource.OPEN) {
        this.time += every;
        this.pass(-1, every);
        this.await(every, 1);
      }
    }, wait * every);
  }

  // pass ends an interval: what has no row in the event has not changed.
  pass(seq, ms) {
    for (const s of this.series.values()) {
      if (ms === 0) {
        continue; // rates follow
      }
      // Histograms change with flushes, so one that is still is noticed after two.
      if (s.seq !== seq && (s.kind !== 'histogram' || this.time - (s.at ?? this.time) > 2.5 * (s.gap ?? 5000))) {
        s.rate = 0;
      }
      if (s.kind !== 'text') {
        s.line.add(s.kind === 'gauge' ? Number(s.value) : s.rate ?? 0, ms, s.kind === 'gauge');
      }
    }
    this.paint(seq, ms);
  }

  // gone strikes a stat out that has ended. The next look at the list leaves it out.
  gone(name) {
    for (const e of this.cells.get(name)?.stat ?? []) {
      e.closest('tr')?.classList.add('gone');
    }
    this.series.delete(name);
  }

  paint(seq, ms) {
    this.look();
    for (const [name, s] of this.series) {
      const cells = this.cells.get(name);
      if (cells && (this.rows.length === 0 || this.seen.has(name))) {
        this.paintOne(name, s, this.at(name), s.seq === seq, true);
      } else if (cells) {
        this.behind.add(name);
      }
    }
    this.catchUp(false, Math.ceil(this.behind.size / 20)); // later would be another frame
    this.paintSums(ms);
  }

  paintOne(name, s, cells, moved, draw) {
    if (moved) {
      for (const e of cells.stat) {
        const text = s.kind === 'text' ? s.value : e.dataset.unit ? figures(s.value / e.dataset.unit) : grouped(s.value);
        if (e.textContent !== text) {
          put(e, text);
          quiet(e, false);
          cellOf(e)?.setAttribute('data-value', s.value);
        }
      }
      if (s.kind !== 'text') {
        this.change(cells, name, s.value, s.kind === 'counter');
      }
      for (const e of s.quantiles ? cells.quantiles : []) {
        all('b', e).forEach((b, i) => {
          put(b, figures(s.quantiles[i] / b.dataset.unit) + b.dataset.symbol);
          b.dataset.value = s.quantiles[i];
        });
        e.title = words.quantiles;
      }
    }
    if (s.rate !== undefined && (s.kind === 'counter' || s.kind === 'histogram')) {
      for (const e of cells.rate) {
        put(e, perSecond(s.rate));
        cellOf(e)?.setAttribute('data-value', s.rate);
        quiet(e, s.rate === 0);
      }
    }
    if (draw && s.kind !== 'histogram' && s.kind !== 'text') {
      cells.spark.forEach((e) => s.line.draw(e, s.kind === 'counter', e.localName === 'td'));
    }
    for (const e of cells.changed) {
      const at = s.at ?? e.dataset.at;
      if (at) {
        put(e, age((this.time - at) / 1000));
      }
    }
  }

  // paintSums shows the sums over all stats whose names begin alike: the value, the
  // rate, a line.
  paintSums(ms) {
    for (const e of this.totals) {
      const list = [...this.series].filter(([name]) => name.startsWith(e.dataset.sum)).map(([, s]) => s);
      if (list.length === 0) {
        continue;
      }
      e.dataset.value = list.reduce((sum, s) => sum + Number(s.value), 0);
      e.textContent = grouped(e.dataset.value);
      if (!e.classList.contains('big')) {
        continue;
      }
      const rate = list.reduce((sum, s) => sum + (s.rate ?? 0), 0);
      const box = e.closest('div');
      if (ms > 0) {
        const e = box.querySelector('.persecond');
        e.dataset.value = rate;
        e.textContent = `${perSecond(rate)} /s`;
      }
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

// shown is what moves in the page.
export const shown = document.querySelector('[data-stream-filter]') ? new Live(document.getElementById('main')) : null;
document.documentElement.dataset.live = 'yes';
