// The past of a stat as a small line.
const { svg, perSecond, figures } = await import(document.querySelector('script[src$="/admin.js"]').src);

const words = {
  peak: (x) => `peak ${x}`,
  range: (a, b) => `${a} to ${b}`,
};
const points = 60;
const across = Array.from({ length: points }, (_, i) => Math.round((i * 960) / (points - 1)) / 10);

// sparkline draws values with the time between them. Counters start at zero, gauges
// span their range, but at least a tenth of the value, so that noise stays flat.
function sparkline(e, values, fromZero) {
  const high = Math.max(...values);
  let low = fromZero ? 0 : Math.min(...values);
  const span = Math.max(high - low, fromZero ? 1e-9 : Math.abs(high) * 0.1, 1e-9);
  low = fromZero ? 0 : (high + low) / 2 - span / 2;
  const line = values.map((v, i) => `${across[points - values.length + i]},${Math.round(185 - ((v - low) / span) * 170) / 10}`).join(' ');
  const old = e.querySelector('polyline');
  if (old) {
    old.setAttribute('points', line);
  } else {
    e.replaceChildren(svg('svg', { class: 's', viewBox: '0 0 96 20', preserveAspectRatio: 'none', 'aria-hidden': 'true' }, svg('polyline', { class: 'ln', points: line })));
  }
}

// Line is the past of a value in steps of one length; the last one grows. It begins
// with the points that the server has put into the element, as values and counts.
export class Line {
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

  draw(e, fromZero, range) {
    const list = this.elapsed > 0 ? [...this.past, this.now].slice(-points) : this.past;
    const flat = list.every((x) => x === list[0]);
    // A flat line looks the same a step later.
    if (list.length < 2 || flat && this.drawn === list.length && list.length === points) {
      return;
    }
    this.drawn = flat ? list.length : 0;
    if (flat && list[0] === 0) {
      e.replaceChildren();
      return;
    }
    sparkline(e, list, fromZero);
    if (range) {
      const text = fromZero ? words.peak(perSecond(Math.max(...list))) : flat ? '' : words.range(figures(Math.min(...list)), figures(Math.max(...list)));
      if (e.textContent !== text) {
        e.replaceChildren(e.firstChild, text);
      }
    }
  }
}
