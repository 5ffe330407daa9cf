// The stats page: the order of its rows, and the zero point.
const module = (name) => import(document.querySelector(`script[src$="/${name}"]`).src);
const { all, nameOf, say, page, parameter, put, replace, navigate } = await module('admin.js');
const { shown } = await module('live.js');

const words = {
  more: (n) => `${n} new ${n === 1 ? 'match' : 'matches'}`,
  order: 'Order changed',
  show: 'Show',
  sort: 'Re-sort now',
  zero: 'Zero point set',
};

// setZero makes changes count from the shown values.
function setZero(button) {
  const zero = String(shown.time || button.dataset.now);
  const values = {};
  for (const name of shown.cells.keys()) {
    const cells = shown.at(name);
    if (cells.delta.length > 0) {
      values[name] = shown.exact(name);
      shown.bases.set(name, values[name]);
      shown.change(cells, name, values[name]);
    }
  }
  shown.zero = zero;
  sessionStorage.setItem('zero', JSON.stringify({ zero, values }));
  say(words.zero);
  parameter('zero', zero);
  navigate(location.href, ['results', 'controls']);
}

// Order keeps the rows of the stats page in order. They do not move while the pointer
// or the focus is among them, or shortly after something was typed.
class Order {
  constructor() {
    this.typed = 0;
    document.addEventListener('input', () => { this.typed = performance.now(); });
    document.addEventListener('click', (event) => {
      if (event.target.closest('#fresh button')) {
        replace(['results'], location.href);
      }
    });
    document.addEventListener('replaced', () => {
      this.rows = undefined;
      this.later(0);
    });
    this.later(0);
  }

  // later looks again so that the server spends 1 % of its time on it at most, and screen
  // readers read one message in 5 s.
  later(took) {
    clearTimeout(this.timer);
    const offered = document.querySelector('#fresh:not([hidden])');
    this.timer = setTimeout(() => this.look(), Math.max(offered ? 5000 : 2000, took * 100));
  }

  frozen() {
    const table = document.getElementById('stats');
    return table?.matches(':hover') || table?.contains(document.activeElement) || performance.now() - this.typed < 5000;
  }

  async look() {
    const start = performance.now();
    const { href } = location;
    if (!document.hidden && !shown.paused) {
      try {
        const answer = await fetch(`${location.pathname}${location.search}${location.search ? '&' : '?'}tsv=order`);
        if (answer.ok) {
          await this.compare(await answer.text(), href);
        }
      } catch { /* the next time */ }
    }
    this.later(performance.now() - start);
  }

  // compare compares the shown rows with the number of matches and the names that the
  // page would have now, each in a line.
  async compare(order, href) {
    const bar = document.getElementById('fresh');
    if (!bar || location.href !== href) {
      return;
    }
    const [total] = order.split('\n', 1);
    this.rows ??= all('#stats tr:has(.pin)').map((row) => `\n${nameOf(row).replace(/[\t\n\r]/g, ' ')}`).join('');
    const now = document.getElementById('results');
    const more = total - now.dataset.total;
    const same = more <= 0 && order === total + this.rows;
    if (bar.hidden !== same) { // setting it again costs a frame
      bar.hidden = same;
    }
    if (same) {
      return;
    }
    if (more > 0 || this.frozen()) {
      put(bar.querySelector('p'), more > 0 ? words.more(more) : words.order);
      put(bar.querySelector('button'), more > 0 ? words.show : words.sort);
      return;
    }
    const fresh = (await page(href))?.getElementById('results');
    if (fresh && now.isConnected && location.href === href && !this.frozen()) {
      this.sort(fresh, now, bar);
    }
  }

  // sort puts the rows in the order of a fresh page.
  sort(fresh, now, bar) {
    bar.hidden = true;
    const key = (row) => `${row.classList.contains('pinned')} ${nameOf(row)}`;
    const rows = new Map(all('tbody tr:has(.pin)', now).map((row) => [key(row), row]));
    const sorted = all('tbody tr', fresh).map((row) => {
      const old = row.querySelector('.pin') && rows.get(key(row));
      if (!old || old.classList.contains('gone')) {
        return row;
      }
      old.firstElementChild.replaceWith(row.firstElementChild); // what it shares with the row above
      return old;
    });
    now.querySelector('tbody').replaceChildren(...sorted);
    const from = fresh.querySelector('[data-stream-filter]');
    const to = now.querySelector('[data-stream-filter]');
    if (from && to) {
      to.dataset.streamFilter = from.dataset.streamFilter;
    }
    this.rows = undefined;
    shown.renew();
  }
}

if (shown !== null) {
  new Order();
  document.addEventListener('click', (event) => {
    const button = event.target.closest('#zero');
    if (button && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
      event.preventDefault();
      setZero(button);
    }
  }, true);
}
document.documentElement.dataset.order = 'yes';
