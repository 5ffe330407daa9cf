// Shows saved dumps without sending them anywhere, and what differs between two of
// them, between one and the server, or between now and when the page was opened. Finds
// the path of a node of a tree.

const words = {
  broken: (name) => `${name} is neither JSON nor lines of stats.`,
  same: 'They do not differ.',
  more: (n) => `and ${n} more`,
  differ: (n) => (n === 1 ? '1 difference' : `${n} differences`),
  none: '–',
  old: 'Saved',
  other: 'Other',
  opened: 'When opened',
  now: 'Now',
  unread: 'The server did not answer.',
  path: 'Path',
  copy: 'Copy path',
  copied: 'Copied',
  tsv: 'TSV',
};
const most = 1000;
const name = /^[A-Za-z_][A-Za-z_0-9]*$/;
const box = document.getElementById('saved');
const out = document.getElementById('saved-out');
const make = (name, properties = {}, ...children) => {
  const e = Object.assign(document.createElement(name), properties);
  e.append(...children);
  return e;
};

// parse reads JSON, or the lines of /stats.
function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    const lines = text.split('\n').filter(Boolean).map((line) => /^(.*?): (.*)$/.exec(line));
    return lines.length > 0 && lines.every(Boolean) ? Object.fromEntries(lines.map(([, name, value]) => [name, value])) : null;
  }
}

// tree shows a value; what is inside is made once it is opened.
function tree(key, value) {
  const label = make('span', { className: 'key', textContent: key });
  if (value === null || typeof value !== 'object') {
    return make('div', { className: 'leaf' }, label, ' ', make('span', { className: 'wrap', textContent: String(value) }));
  }
  const keys = Object.keys(value);
  const node = make('details', {}, make('summary', {}, label, ' ', make('span', { className: 'quiet', textContent: Array.isArray(value) ? `[${keys.length}]` : `{${keys.length}}` })));
  node.addEventListener('toggle', () => {
    if (node.open && node.children.length === 1) {
      node.append(...keys.slice(0, most).map((k) => tree(k, value[k])));
      if (keys.length > most) {
        node.append(make('div', { className: 'leaf quiet', textContent: words.more(keys.length - most) }));
      }
    }
  });
  return node;
}

// nameOf names an element of a list, so that its place does not matter.
function nameOf(value, index) {
  const named = [value, ...Object.values(value ?? {})].find((v) => typeof v?.name === 'string' || typeof v?.cluster_name === 'string');
  return named ? named.name ?? named.cluster_name : String(value?.['@type'] ?? index);
}

// flat lists the leaves of a value by their paths.
function flat(value, path = '', into = new Map()) {
  if (value === null || typeof value !== 'object') {
    into.set(path, String(value));
  } else if (Array.isArray(value)) {
    value.forEach((v, i) => flat(v, `${path}[${nameOf(v, i)}]`, into));
  } else {
    Object.entries(value).forEach(([k, v]) => flat(v, path ? `${path}.${k}` : k, into));
  }
  return into;
}

function compare(a, b, id = 'differences', sides = [words.old, words.other]) {
  const [from, to] = [flat(a), flat(b)];
  const paths = [...new Set([...from.keys(), ...to.keys()])].filter((path) => from.get(path) !== to.get(path)).sort();
  if (paths.length === 0) {
    return [make('p', { className: 'empty', textContent: words.same })];
  }
  const rows = paths.slice(0, most).map((path) => make('tr', {}, make('th', { scope: 'row' }, make('code', { className: 'wrap', textContent: path })),
    ...[from, to].map((side) => make('td', { className: 'wrap', textContent: side.get(path) ?? words.none }))));
  const head = make('tr', {}, ...[words.path, ...sides].map((textContent) => make('th', { scope: 'col', textContent })));
  const region = make('div', { className: 'scroll', tabIndex: 0 }, make('table', { id }, make('caption', { className: 'vh', textContent: words.differ(paths.length) }), make('thead', {}, head), make('tbody', {}, ...rows)));
  region.setAttribute('role', 'region');
  region.setAttribute('aria-label', words.differ(paths.length));
  const tsv = make('button', { type: 'button', textContent: words.tsv, hidden: !navigator.clipboard });
  tsv.addEventListener('click', async () => {
    const list = [[words.path, ...sides], ...paths.map((path) => [path, from.get(path) ?? '', to.get(path) ?? ''])];
    await navigator.clipboard.writeText(list.map((row) => `${row.map((x) => x.replace(/[\t\r\n]/g, ' ')).join('\t')}\n`).join(''));
    tsv.textContent = words.copied;
  });
  return [make('p', { className: 'pad row' }, words.differ(paths.length), tsv), region, ...(paths.length > most ? [make('p', { className: 'empty', textContent: words.more(paths.length - most) })] : [])];
}

// opened returns the contents of the chosen files, or null after an error.
async function opened() {
  const values = [];
  for (const input of box.querySelectorAll('input[type="file"]')) {
    for (const file of input.files) {
      const value = parse(await file.text());
      if (value === null) {
        out.replaceChildren(make('p', { className: 'empty bad', textContent: words.broken(file.name) }));
        return null;
      }
      values.push([file.name, value]);
    }
  }
  return values;
}

box.addEventListener('change', async () => {
  const list = await opened();
  if (list === null) {
    return;
  }
  box.querySelector('button').disabled = list.length !== 1;
  if (list.length === 2) {
    out.replaceChildren(...compare(list[0][1], list[1][1]));
  } else {
    out.replaceChildren(...list.map(([name, value]) => {
      const root = tree(name, value);
      root.open = true;
      return make('div', { className: 'pad tree' }, root);
    }));
  }
});
box.querySelector('button').addEventListener('click', async () => {
  const [[, value]] = await opened();
  const kinds = [['configs', 'config_dump'], ['cluster_statuses', 'clusters?format=json']];
  const path = kinds.find(([key]) => key in value)?.[1] ?? 'stats';
  out.replaceChildren(...compare(value, parse(await (await fetch(`../${path}`)).text())));
});

// The part that is shown, as it was when the page was opened. It is small: the server
// draws no tree of much.
const since = () => document.getElementById('since');
const read = async (part) => {
  const answer = await fetch(part).catch(() => null);
  return answer?.ok ? parse(await answer.text()) : null;
};
const { part } = since()?.dataset ?? {};
const before = part && read(part);
let compared = false; // the user wants to see the changes
const changes = async () => {
  const [from, to] = [await before, await read(part)];
  document.getElementById('since-out')?.replaceChildren(...(from && to ? compare(from, to, 'changes', [words.opened, words.now]) : [make('p', { className: 'empty', textContent: words.unread })]));
};
document.addEventListener('click', (event) => {
  if (event.target === since()) {
    compared = true;
    changes();
  }
});
document.addEventListener('replaced', () => compared && changes());

// placeOf returns the path of a node in the notation of jq.
function placeOf(node) {
  const keys = [];
  for (let e = node; e; e = e.parentElement.closest('details')) {
    keys.unshift(e.querySelector('.key').textContent);
  }
  return keys.slice(1).reduce((path, key) => path + (name.test(key) ? `.${key}` : `[${/^\d+$/.test(key) ? key : JSON.stringify(key)}]`), '') || '.';
}

const nodeOf = (e) => e.closest?.('.tree .leaf, .tree details');
const bar = make('p', { className: 'pad row' }, make('code', { className: 'wrap' }), make('button', { type: 'button', textContent: words.copy, hidden: !navigator.clipboard }));
bar.lastChild.addEventListener('click', async () => {
  await navigator.clipboard.writeText(bar.firstChild.textContent);
  bar.lastChild.textContent = words.copied;
});
for (const kind of ['click', 'focusin']) {
  document.addEventListener(kind, (event) => {
    const node = nodeOf(event.target);
    if (node) {
      bar.firstChild.textContent = placeOf(node);
      bar.lastChild.textContent = words.copy;
      const tree = node.closest('.tree');
      if (tree.previousElementSibling !== bar) {
        tree.before(bar);
      }
    }
  });
}

// Arrows walk over the nodes of a tree, and copying without a selection copies the path.
document.addEventListener('keydown', (event) => {
  const tree = event.target.closest('.tree');
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (tree && step && !event.ctrlKey && !event.metaKey && !event.altKey) {
    const list = [...tree.querySelectorAll('summary, .leaf')].filter((e) => e.checkVisibility());
    const next = list[list.indexOf(event.target) + step];
    if (next) {
      event.preventDefault();
      next.tabIndex = next.matches('.leaf') ? -1 : 0;
      next.focus();
    }
  }
});
document.addEventListener('copy', (event) => {
  const node = nodeOf(document.activeElement);
  if (node && getSelection().isCollapsed) {
    event.clipboardData.setData('text/plain', placeOf(node));
    event.preventDefault();
  }
});
box.dataset.ready = 'yes';
