// Shows saved dumps without sending them anywhere, and what differs between two of
// them, or between one and the server.

const words = {
  broken: (name) => `${name} is neither JSON nor lines of stats.`,
  same: 'They do not differ.',
  more: (n) => `and ${n} more`,
  differ: (n) => `${n} differences`,
  none: '–',
  old: 'Saved',
  other: 'Other',
  path: 'Path',
};
const most = 1000;
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

function compare(a, b) {
  const [from, to] = [flat(a), flat(b)];
  const paths = [...new Set([...from.keys(), ...to.keys()])].filter((path) => from.get(path) !== to.get(path)).sort();
  if (paths.length === 0) {
    return [make('p', { className: 'empty', textContent: words.same })];
  }
  const rows = paths.slice(0, most).map((path) => make('tr', {}, make('th', { scope: 'row' }, make('code', { className: 'wrap', textContent: path })),
    ...[from, to].map((side) => make('td', { className: 'wrap', textContent: side.get(path) ?? words.none }))));
  const head = make('tr', {}, ...[words.path, words.old, words.other].map((textContent) => make('th', { scope: 'col', textContent })));
  const region = make('div', { className: 'scroll', tabIndex: 0 }, make('table', { id: 'differences' }, make('caption', { className: 'vh', textContent: words.differ(paths.length) }), make('thead', {}, head), make('tbody', {}, ...rows)));
  region.setAttribute('role', 'region');
  region.setAttribute('aria-label', words.differ(paths.length));
  return [make('p', { className: 'pad', textContent: words.differ(paths.length) }), region, ...(paths.length > most ? [make('p', { className: 'empty', textContent: words.more(paths.length - most) })] : [])];
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
box.dataset.ready = 'yes';
