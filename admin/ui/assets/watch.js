// Asks for the state of the server while the page is visible. One bar says why the page
// does not move; the old values stay. The stream of changes reports here, too.

const words = {
  stale: () => 'The server does not answer.',
  lost: () => 'Disconnected. The values are the last known ones.',
  cut: () => 'The stream of changes is interrupted.',
  busy: () => 'The server is busy with other requests.',
  login: () => 'The server wants a token or a password. It stays in the memory of the browser.',
  refused: (why) => `The server refuses: ${why}`,
  old: (age) => ` No update for ${age} s.`,
  next: (left) => ` Next try in ${left} s.`,
  retry: 'Retry now',
  signIn: 'Sign in',
  days: (d, h) => `${d} d ${h} h`,
  hours: (h, m) => `${h} h ${m} min`,
  minutes: (m, s) => `${m} min ${s} s`,
  seconds: (s) => `${s} s`,
  skew: (s) => `The clocks of this computer and of the server differ by ${s} s: ages and times on this page may be wrong.`,
};
const usual = 5000; // ms between two questions
const patience = 3000; // ms for an answer
const longest = 30; // s between two tries
const late = 3000; // ms without the stream
const skewed = 5; // s between the clocks

const main = document.getElementById('main');
const bar = document.getElementById('watch');
const [text, clock] = bar.querySelectorAll('p, p span');
const form = bar.querySelector('form');
const { token } = form.elements;
const button = form.querySelector('button');
let asking = false;
let enabled = null; // null: no answer yet
let tries = 0;
let due = 0;
let heard = Date.now();
let now = ''; // the problem
let cut = 0; // when the stream was interrupted; 0: it is not

// streaming says whether the stream of changes is connected.
export function streaming(connected) {
  cut = connected ? 0 : cut || Date.now();
  if (connected && now === 'cut') {
    show('');
  }
}

// show shows a problem; '' hides the bar.
function show(problem, why) {
  now = problem;
  bar.hidden = problem === '';
  main.classList.toggle('stale', problem !== '');
  bar.dataset.problem = problem;
  if (problem === '') {
    return;
  }
  const meaning = ['stale', 'cut', 'busy'].includes(problem) ? 'warn' : 'bad';
  bar.className = `note ${meaning}`;
  bar.querySelector('use').setAttribute('href', `#i-${meaning}`);
  text.firstChild.data = words[problem](why);
  token.hidden = problem !== 'login';
  button.textContent = problem === 'login' ? words.signIn : words.retry;
  tick();
}

function tick() {
  const left = Math.max(Math.ceil((due - Date.now()) / 1000), 0);
  if (now === '' && cut > 0 && Date.now() - cut > late) {
    show('cut');
    return;
  }
  if (now !== '') { // a change costs a frame, even of what is hidden
    const since = { stale: heard, cut }[now];
    clock.textContent = since ? words.old(Math.round((Date.now() - since) / 1000)) : words.next(left);
  }
  if (left === 0) {
    ask();
  }
}

// hide hides an element or shows it. To set what it is costs a frame.
function hide(e, hidden) {
  if (e.hidden !== hidden) {
    e.hidden = hidden;
  }
}

// span is a duration in its two greatest units, as the server shows it.
function span(s) {
  const [d, h, m] = [Math.floor(s / 86400), Math.floor(s / 3600) % 24, Math.floor(s / 60) % 60];
  return d > 0 ? words.days(d, h) : h > 0 ? words.hours(h, m) : m > 0 ? words.minutes(m, s % 60) : words.seconds(s);
}

// state shows the state of the server, and for how many seconds it has been running.
function state(name, up) {
  for (const e of document.querySelectorAll('[data-state]')) {
    if (e.lastChild.data !== name) {
      const meaning = { LIVE: 'ok', DRAINING: 'warn' }[name] ?? 'info';
      e.className = `${e.dataset.state} ${meaning}`;
      e.querySelector('use').setAttribute('href', `#i-${meaning}`);
      e.lastChild.data = name;
    }
  }
  for (const e of document.querySelectorAll('[data-uptime]')) {
    e.dataset.value = up;
    e.firstChild.data = span(up);
  }
  hide(document.getElementById('draining'), name !== 'DRAINING');
}

// compare warns if the clocks differ.
function compare(date) {
  const by = Math.round((Date.now() - Date.parse(date)) / 1000);
  const note = document.getElementById('skew');
  hide(note, !(Math.abs(by) > skewed));
  note.querySelector('p').textContent = note.hidden ? '' : words.skew(by.toLocaleString('en'));
}

async function ask() {
  if (asking || enabled === false || document.hidden) {
    return;
  }
  asking = true;
  let answer = null;
  let body = '';
  let hangs = false;
  try {
    answer = await fetch('../server_info', { cache: 'no-store', signal: AbortSignal.timeout(patience) });
    body = await answer.text();
  } catch (error) {
    answer = null;
    hangs = error.name === 'TimeoutError';
  }
  asking = false;
  if (answer?.ok) {
    tries = 0;
    due = Date.now() + usual;
    heard = Date.now();
    enabled = true;
    const info = JSON.parse(body);
    state(info.state, parseInt(info.uptime_current_epoch, 10));
    compare(answer.headers.get('date'));
    if (now !== '') {
      if (now !== 'cut') {
        show('');
      }
      document.dispatchEvent(new Event('recovered'));
    }
    return;
  }
  if (enabled === null && [401, 403, 404].includes(answer?.status)) {
    enabled = false; // this client may not ask
    return;
  }
  enabled = true;
  const wait = Number(answer?.headers.get('retry-after')) || Math.min(2 ** tries, longest);
  tries++;
  due = Date.now() + wait * 1000;
  if (answer === null) {
    show(hangs ? 'stale' : 'lost');
  } else if (answer.status === 401) {
    show('login');
  } else if (answer.status === 503 || answer.status === 429) {
    show('busy');
  } else {
    show('refused', body.trim());
  }
}

// signIn makes the browser remember credentials for all requests to the server, also
// for those that a script cannot give a header.
function signIn() {
  const request = new XMLHttpRequest();
  request.open('GET', '../server_info', true, 'token', token.value);
  request.setRequestHeader('x-sign-in', '1');
  request.addEventListener('loadend', ask);
  request.send();
  token.value = '';
}

form.addEventListener('submit', (event) => {
  event.preventDefault();
  if (now === 'login' && token.value !== '') {
    signIn();
  } else {
    ask();
  }
});
document.addEventListener('visibilitychange', ask);
for (const event of ['online', 'focus']) {
  window.addEventListener(event, ask);
}
setInterval(tick, 1000);
ask();
