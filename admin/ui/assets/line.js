// The line of a stat over time zooms by dragging and by keys.
const module = (name) => import(document.querySelector(`script[src$="/${name}"]`).src);
const { parameter, replace } = await module('admin.js');

const part = () => document.getElementById('line');
const plot = () => document.getElementById('plot');
const least = 4; // pixels of a drag
let drag = null; // where it began, and what shows it

// go shows another part of the history, as a new entry of the history of the browser.
function go(from, to) {
  history.pushState(null, '', location.href);
  parameter('from', String(Math.round(from)));
  parameter('to', String(Math.round(to)));
  replace(['line'], location.href);
}

document.addEventListener('click', (event) => {
  const link = event.target.closest?.('#line a[data-k]');
  if (link && !link.dataset.copy && !event.ctrlKey && !event.metaKey && !event.shiftKey && link.dataset.k !== 'tsv') {
    event.preventDefault();
    history.pushState(null, '', link.href);
    replace(['line'], link.href);
  }
});
window.addEventListener('popstate', () => replace(['line'], location.href));

document.addEventListener('keydown', (event) => {
  if (event.target === plot() && !event.ctrlKey && !event.metaKey && !event.altKey) {
    const link = part().querySelector(`[data-zoom="${CSS.escape(event.key === '=' ? '+' : event.key)}"]`);
    if (link) {
      event.preventDefault();
      link.click();
    }
  }
});

document.addEventListener('pointerdown', (event) => {
  if (event.button === 0 && plot()?.contains(event.target)) {
    event.preventDefault(); // selects no text
    plot().focus();
    const mark = document.createElementNS(plot().namespaceURI, 'rect');
    mark.setAttribute('class', 'bin sel');
    mark.setAttribute('height', '100%');
    plot().prepend(mark);
    drag = { x: event.clientX, mark };
  }
});
document.addEventListener('pointermove', (event) => {
  if (drag) {
    drag.mark.setAttribute('x', Math.min(drag.x, event.clientX) - plot().getBoundingClientRect().left);
    drag.mark.setAttribute('width', Math.abs(event.clientX - drag.x));
  }
});
document.addEventListener('pointerup', (event) => {
  if (!drag) {
    return;
  }
  const { x, mark } = drag;
  drag = null;
  mark.remove();
  const box = plot().getBoundingClientRect();
  const { from, to } = plot().dataset;
  const at = (clientX) => Number(from) + (to - from) * Math.min(Math.max((clientX - box.left) / box.width, 0), 1);
  if (Math.abs(event.clientX - x) >= least) {
    go(at(Math.min(x, event.clientX)), at(Math.max(x, event.clientX)));
  }
});
document.addEventListener('pointercancel', () => {
  drag?.mark.remove();
  drag = null;
});
document.documentElement.dataset.line = 'yes';
