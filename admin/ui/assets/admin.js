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
  now: 'now',
  shortcuts: 'Keyboard shortcuts',
  keys: [['/', 'focus the filter'], ['Esc', 'leave a field, close a dialog, select nothing'], ['j k', 'next and previous row; in a row ↓ ↑ too'], ['Enter', 'open the row'],
    ['Space', 'pin the row'], ['[ ]', 'previous and next page'], ['1 … 9', 'sort by that column, again to reverse'], ['c', 'copy the row, or else the table'],
    ['n', 'refresh'], ['p', 'pause or go live'], ['z', 'set the zero point'], ['?', 'this help']],
  goTo: (page) => `go to ${page}`,
  off: 'Shortcuts are on',
  copiedRow: (name) => `Copied ${name}`,
};

const root = document.documentElement;
export const all = (selector, from = document) => [...from.querySelectorAll(selector)];
export const element = (name, properties = {}, ...children) => {
  const e = document.createElement(name);
  Object.assign(e, properties);
  e.append(...children);
  return e;
};
export const svg = (name, attributes, ...children) => {
  const e = document.createElementNS(document.querySelector('svg').namespaceURI, name);
  for (const [key, value] of Object.entries(attributes)) {
    e.setAttribute(key, value);
  }
  e.append(...children);
  return e;
};
export const put = (e, text) => {
  if (e.textContent !== text) {
    e.textContent = text; // a new node: one that grows to the left would count as a layout shift
  }
};

// Numbers, as the server shows them.
export const grouped = (n) => {
  const text = String(n).replace('-', '\u2212');
  const [whole, rest] = text.split(/(?=[.e])/);
  return whole.replace(/\B(?=(\d{3})+$)/g, ',') + (rest ?? '');
};
export const perSecond = (x) => (x === 0 || x >= 10000 ? grouped(Math.round(x)) : grouped(x.toFixed(1)));
export const figures = (x) => (Math.abs(x) >= 100 || Number.isInteger(x) ? grouped(Math.round(x)) : grouped(Number(x.toPrecision(3))));
export const age = (s) => (s < 1 ? words.now : s < 60 ? `${Math.floor(s)} s` : s < 3600 ? `${Math.floor(s / 60)} min` : `${Math.floor(s / 3600)} h`);

export const stored = (name, value) => {
  try {
    if (value === undefined) {
      return localStorage.getItem(name);
    }
    localStorage.setItem(name, value);
  } catch { /* storage is off */ }
  return null;
};

// The server decodes percent signs alone: a plus is no space.
const decoded = (text) => {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
};
const query = (search) => new Map(search.replace(/^\?/, '').split('&').filter(Boolean).map((pair) => {
  const [name, ...value] = pair.split('=');
  return [decoded(name), decoded(value.join('='))];
}));
const address = (path, values) => {
  const pairs = [...values].filter(([, value]) => value !== '').map((pair) => pair.map(encodeURIComponent).join('='));
  return path + (pairs.length > 0 ? `?${pairs.join('&')}` : '');
};

// parameter returns a part of the view that is in the address, or sets it.
export function parameter(name, value) {
  const values = query(location.search);
  if (value !== undefined && value !== (values.get(name) ?? '')) {
    values.set(name, value);
    history.replaceState(null, '', address(location.pathname, values));
  }
  return values.get(name) ?? '';
}

// carried returns url with the parts of the view that only the script changes.
function carried(url) {
  const to = new URL(url, document.baseURI);
  const values = query(to.search);
  for (const name of ['pause', 'sel', 'every']) {
    values.set(name, parameter(name));
  }
  return address(to.pathname, values);
}

// say tells screen readers something.
export function say(text) {
  let region = document.getElementById('say');
  if (!region) {
    region = element('p', { id: 'say', className: 'vh' });
    region.setAttribute('role', 'status');
    document.body.append(region);
  }
  region.textContent = text;
}

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
    form.addEventListener('submit', () => { agreed = true; });
    dialog.addEventListener('close', () => resolve(agreed));
  });
}

// described returns the request of a form and what it and its options do, in words.
function described(form) {
  const path = form.getAttribute('action').replace(/^(\.\.\/)+/, '');
  const set = [...new FormData(form)].map(([name, value]) => (form.elements.namedItem(name)?.type === 'checkbox' ? name : `${name}=${value}`));
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
      const other = e.type === 'radio' && !e.checked; // another choice of the name counts
      if (e.name && !data && !other && (e.value === '' || e.value === initial)) {
        event.formData.delete(e.name);
      }
    }
    // A parameter whose name is typed may have an empty value.
    const [key, value] = ['key', 'value'].map((part) => [...form.elements].find((e) => e.dataset.pair === part));
    if (key && key.value !== '') {
      event.formData.append(key.value, value.value);
    }
  });
  if (!posts) {
    form.addEventListener('submit', (event) => {
      const data = new FormData(form, event.submitter);
      if (!form.dataset.live && / /.test([...data.values()])) {
        event.preventDefault(); // browsers send + for a space
        location.href = address(form.getAttribute('action'), data);
      }
    });
    return;
  }
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    const opener = event.submitter;
    const allowed = [form.dataset.word, form.dataset.node].filter(Boolean);
    if (await confirmed(...described(form), form.dataset.word ? allowed : [])) {
      form.submit();
    } else {
      opener?.focus();
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
const local = new Intl.DateTimeFormat('sv', { dateStyle: 'short', timeStyle: 'medium' }); // as in ISO 8601
function localTimes(from) {
  for (const e of all('time[datetime]', from)) {
    e.textContent = local.format(new Date(e.dateTime));
  }
}

// page fetches a view as a document. Documents of XMLHttpRequest run no scripts.
export function page(url) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.responseType = 'document';
    request.onload = () => resolve(request.response);
    request.onerror = reject;
    request.open('GET', url);
    request.send();
  });
}

// Rows of stats.
export const rowOf = (e) => e?.closest?.('#results tbody tr:has(.pin)');
export const nameOf = (row) => row.querySelector('a:not(.pin)').textContent;

// swap shows a fresh part, which leaves its document: a copy would take as long as the
// rest. Focus, places and open menus stay.
function swap(old, part) {
  const { activeElement } = document;
  const focused = old.contains(activeElement) && activeElement;
  for (const menu of all('details[id][open]', old)) {
    part.querySelector(`#${CSS.escape(menu.id)}`)?.setAttribute('open', '');
  }
  const [before, after] = [all('details:not([id])', old), all('details:not([id])', part)];
  if (before.length === after.length) {
    before.forEach((menu, i) => { after[i].open = menu.open; });
  }
  const scrolls = '.scroll, .pick ul';
  const scrolled = all(scrolls, old).map((e) => e.scrollLeft);
  let same = '';
  let within = part;
  if (focused) {
    const { k } = focused.dataset;
    const row = rowOf(focused);
    within = row ? all('tr:has(.pin)', part).find((e) => nameOf(e) === nameOf(row)) : part;
    same = row ? focused.matches('.pin') ? '.pin' : 'a:not(.pin)' : k ? `[data-k="${CSS.escape(k)}"]`
      : focused.rel ? `a[rel="${focused.rel}"]` : focused.href ? `a[href="${CSS.escape(focused.getAttribute('href'))}"]` : focused.name ? `[name="${focused.name}"]${focused.type === 'radio' ? `[value="${focused.value}"]` : ''}` : '.scroll';
  }
  old.replaceWith(part);
  enliven(part);
  all(scrolls, part).forEach((e, i) => {
    if (scrolled[i] > 0) { // setting it takes a layout
      e.scrollLeft = scrolled[i];
    }
  });
  if (focused) {
    (within?.querySelector(same) ?? part.querySelector('.scroll') ?? document.getElementById('main')).focus({ preventScroll: true });
  }
}

// skeleton shows where rows will be.
function skeleton(part) {
  if (!part.querySelector('tbody tr')) {
    const list = element('div', { className: 'skeleton' }, ...Array.from({ length: 5 }, () => element('div')));
    list.setAttribute('aria-hidden', 'true');
    (part.querySelector('.panel') ?? part).append(list);
  }
}

// replace shows parts of the view at url in place of the present ones. While the filter
// is wrong, the rows of the last one stay.
let latest = '';
let rendered = location.search; // of the shown parts
export async function replace(ids, url) {
  const old = ids.map((id) => document.getElementById(id));
  latest = url;
  old[0].setAttribute('aria-busy', 'true');
  const slow = setTimeout(() => skeleton(old[0]), 300);
  try {
    const fresh = await page(url);
    if (latest !== url) {
      return;
    }
    if (!ids.some((id) => fresh?.getElementById(id))) {
      throw new Error('no page');
    }
    const wrong = fresh.querySelector('#validity #filter-error') !== null;
    ids.forEach((id, i) => {
      const part = fresh.getElementById(id);
      if (part && !(wrong && id === 'results')) {
        swap(old[i], part);
      }
    });
    all('input[aria-describedby="validity"]').forEach((input) => (wrong ? input.setAttribute('aria-invalid', 'true') : input.removeAttribute('aria-invalid')));
    rendered = wrong ? rendered : new URL(url, document.baseURI).search;
    if (!wrong && (ids.includes('results') || ids.includes('content'))) {
      document.title = fresh.title;
      for (const part of ['.title', 'footer']) {
        document.querySelector(part).replaceWith(fresh.querySelector(part));
      }
      localTimes(document.querySelector('footer'));
      all('nav a').forEach((a) => a.replaceChildren(...fresh.querySelector(`nav a[href="${a.getAttribute('href')}"]`)?.childNodes ?? a.childNodes));
    }
    document.dispatchEvent(new Event('replaced'));
  } catch { /* the old values stay */ }
  clearTimeout(slow);
  if (latest === url) {
    document.getElementById(ids[0])?.removeAttribute('aria-busy');
    all('.skeleton').forEach((e) => e.remove());
  }
}

// navigate shows another view of the page, as a new entry of the history.
const soft = document.querySelector('form[data-soft]') !== null;
export function navigate(url, ids = ['results', 'controls']) {
  const to = carried(url);
  if (to !== location.pathname + location.search) {
    history.pushState(null, '', to);
  }
  return replace(ids, to);
}
if (soft) {
  window.addEventListener('popstate', () => replace(['results', 'controls'], location.pathname + location.search));
}

const modified = (event) => event.button || event.ctrlKey || event.metaKey || event.shiftKey;

// A link changes what is shown. What was typed or chosen since then stays.
let typed = () => {}; // applies what is being typed
document.addEventListener('click', () => typed(), true);
document.addEventListener('click', (event) => {
  const link = event.target.closest?.('#content a[href]');
  if (!link || link.dataset.copy || link.pathname !== location.pathname || modified(event) || event.defaultPrevented) {
    return;
  }
  const [before, now, to] = [rendered, location.search, link.search].map(query);
  for (const name of new Set([...before.keys(), ...now.keys(), ...to.keys()])) {
    if (before.get(name) === to.get(name) && !document.getElementById('filter-error')) {
      to.set(name, now.get(name) ?? '');
    }
  }
  const url = address(link.pathname, to) + link.hash;
  if (soft) {
    event.preventDefault();
    navigate(url);
  } else if (link.dataset.live) {
    event.preventDefault();
    history.replaceState(null, '', url);
    replace([link.dataset.live], url);
  } else if (url !== address(link.pathname, query(link.search)) + link.hash) {
    event.preventDefault();
    location.href = url;
  }
});

// live makes a filter form work while it is used.
function live(form) {
  const ids = form.dataset.live.split(' ');
  let timer = 0;
  let last = -Infinity; // time of the last key
  let recent = false; // the last entry of the history is of what is being typed
  const update = (typing) => {
    const url = carried(address(form.getAttribute('action'), new FormData(form)));
    const push = soft && !(typing && recent) && url !== location.pathname + location.search;
    history[push ? 'pushState' : 'replaceState'](null, '', url);
    recent = typing && (recent || push);
    replace(ids, url);
  };
  const now = (typing) => {
    clearTimeout(timer);
    typed = () => {};
    update(typing);
  };
  form.addEventListener('focusin', () => { recent = false; });
  form.addEventListener('input', (event) => {
    clearTimeout(timer);
    const typing = event.target.type === 'search';
    typed = () => now(typing);
    const burst = event.timeStamp - last < 50; // a single key acts at once
    last = event.timeStamp;
    timer = setTimeout(now, typing && burst ? 50 : 0, typing);
  });
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    now(true);
  });
}

// enliven prepares a part of the page.
function enliven(from) {
  for (const form of from.localName === 'form' ? [from] : all('form', from)) {
    prepare(form);
    if (form.dataset.live) {
      live(form);
    }
  }
  localTimes(from);
  for (const link of all('[data-copy]', from)) {
    link.addEventListener('click', async (event) => {
      if (modified(event) || !navigator.clipboard) {
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

// walkBins lets arrow keys walk over the bins of a plot.
function walkBins(plot) {
  const rows = all(`#${plot.dataset.bins} tbody tr`);
  const columns = all('.bin', plot);
  const heads = all(`#${plot.dataset.bins} thead th`).map((e) => e.textContent);
  let at = -1;
  plot.addEventListener('keydown', (event) => {
    const steps = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: rows.length - 1 };
    if (!(event.key in steps) || rows.length === 0) {
      return;
    }
    event.preventDefault();
    at = Math.min(Math.max(steps[event.key], 0), rows.length - 1);
    for (const list of [rows, columns]) {
      list.forEach((e, i) => e.classList.toggle('sel', i === at));
    }
    document.getElementById('bin').textContent = [...rows[at].cells].map((c, i) => `${heads[i]} ${c.textContent}`).join(', ');
  });
}

// Refresh renders again what no stream moves, in 1 % of the server's time at most, but
// nothing that is in use.
let moved = 0;
document.addEventListener('pointermove', () => { moved = performance.now(); }, { passive: true });
const every = document.getElementById('refresh');
const edited = (e) => (e.type === 'checkbox' || e.type === 'radio' ? e.checked !== e.defaultChecked
  : e.localName === 'select' ? [...e.options].some((o) => o.selected !== o.defaultSelected) && e.selectedIndex > 0 : e.value !== e.defaultValue);
const busy = () => document.hidden || document.querySelector('dialog, .stale, #pause[aria-pressed="true"]') !== null || !getSelection().isCollapsed || performance.now() - moved < 1000
  || document.activeElement.closest('#content :is(input, select, textarea, .plot, .tree)')
  || all('#content :is(input:not([type="hidden"], [type="file"]), select, textarea)').some(edited);
if (every) {
  every.value = parameter('every');
  if (every.selectedIndex < 0) {
    every.value = '';
  }
  let timer = 0;
  const wait = (took) => {
    clearTimeout(timer);
    const { stream } = every.dataset; // seconds, or '': all of the page moves
    const seconds = stream === undefined ? every.value : stream && Math.max(every.value || stream, took / 10);
    if (seconds) {
      timer = setTimeout(again, seconds * 1000);
    }
  };
  const again = async () => {
    const start = performance.now();
    if (!busy()) {
      await replace([every.dataset.part ?? 'content'], location.pathname + location.search);
    }
    wait(performance.now() - start);
  };
  every.addEventListener('change', () => {
    parameter('every', every.value);
    document.dispatchEvent(new Event('every'));
    wait(0);
  });
  wait(0);
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

const links = () => {
  const named = all('main tbody tr :is(th, td):first-child a:not(.pin), .list a, .pick li a');
  return named.length > 0 ? named : all('main tbody tr').map((row) => row.querySelector('a, button') ?? Object.assign(row, { tabIndex: -1 }));
};
let going = false;
const actions = {
  '/': () => document.querySelector('main input[type="search"]')?.focus(),
  '?': help,
  j: () => step(1),
  k: () => step(-1),
  ArrowDown: () => step(1),
  ArrowUp: () => step(-1),
  n: () => (soft ? navigate(location.href) : location.reload()),
  p: () => {
    const pause = document.querySelector('#pause:not([hidden])');
    if (pause) {
      pause.click();
    } else if (every) {
      every.value = every.value ? '' : '5';
      every.dispatchEvent(new Event('change'));
    }
  },
  c: () => {
    const row = rowOf(document.activeElement);
    if (row && navigator.clipboard) {
      navigator.clipboard.writeText([nameOf(row), ...all('td', row).map((cell) => cell.dataset.value ?? cell.textContent)].join('\t'));
      say(words.copiedRow(nameOf(row)));
    } else {
      document.querySelector('main [data-copy]')?.click();
    }
  },
  z: () => document.getElementById('zero')?.click(),
  ' ': () => rowOf(document.activeElement)?.querySelector('.pin').click(),
  '[': () => document.querySelector('a[rel="prev"]')?.click(),
  ']': () => document.querySelector('a[rel="next"]')?.click(),
};
function step(by) {
  const list = links();
  let at = list.indexOf(document.activeElement);
  if (at < 0) {
    at = list.findIndex((link) => link.closest('tr.sel'));
  }
  list[Math.min(Math.max(at + by, 0), list.length - 1)]?.focus();
}
document.addEventListener('focusin', (event) => {
  const row = rowOf(event.target);
  if (row) {
    all('#results tr.sel').forEach((e) => e.classList.remove('sel'));
    row.classList.add('sel');
    parameter('sel', nameOf(row));
  }
});
document.addEventListener('keydown', (event) => {
  const typing = event.target.closest?.('input:not([type="checkbox"], [type="radio"]), select, textarea, dialog');
  if (event.key === 'Escape' && typing && !event.target.closest('dialog')) {
    event.preventDefault(); // it would clear a search field
    event.target.blur();
    event.target.form?.querySelector('.cancel')?.click();
  }
  if (event.key === 'Escape' && rowOf(event.target)) {
    event.target.blur();
    all('#results tr.sel').forEach((row) => row.classList.remove('sel'));
    parameter('sel', '');
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
  const inRow = rowOf(event.target) || event.key !== ' ' && links().includes(event.target);
  if (action && (inRow || !/^( |Arrow.*)$/.test(event.key))) {
    event.preventDefault();
    action();
  }
});

// The present page and histogram stay in view when the width changes.
const centered = new ResizeObserver((lists) => lists.forEach(({ target }) => {
  const e = target.querySelector('[aria-current]');
  if (e) {
    target.scrollLeft = e.offsetLeft - (target.clientWidth - e.offsetWidth) / 2;
  }
}));
all(':is(nav, .pick) ul').forEach((e) => centered.observe(e));
enliven(document);
const done = document.getElementById('done');
if (done) {
  say(done.textContent);
}
root.dataset.ready = 'yes';
