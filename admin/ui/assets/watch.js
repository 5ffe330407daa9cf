// Asks for the state of the server while the page is visible. One bar says why the page
// does not move; the old values stay.

const words = {
  stale: () => 'The server does not answer.',
  lost: () => 'Disconnected. The values are the last known ones.',
  busy: () => 'The server is busy with other requests.',
  login: () => 'The server wants you to sign in again.',
  refused: (why) => `The server refuses: ${why}`,
  old: (age) => ` No update for ${age} s.`,
  next: (left) => ` Next try in ${left} s.`,
  retry: 'Retry now',
  reload: 'Sign in',
};
const usual = 5000; // ms between two questions
const patience = 3000; // ms for an answer
const longest = 30; // s between two tries

const main = document.getElementById('main');
const bar = document.getElementById('watch');
const [text, clock] = bar.querySelectorAll('p, p span');
const button = bar.querySelector('button');
let asking = false;
let enabled = null; // null: no answer yet
let tries = 0;
let due = 0;
let heard = Date.now();
let now = ''; // the problem

// show shows a problem; '' hides the bar.
function show(problem, why) {
  now = problem;
  bar.hidden = problem === '';
  main.classList.toggle('stale', problem !== '');
  bar.dataset.problem = problem;
  if (problem === '') {
    return;
  }
  const meaning = problem === 'stale' || problem === 'busy' ? 'warn' : 'bad';
  bar.className = `note ${meaning}`;
  bar.querySelector('use').setAttribute('href', `#i-${meaning}`);
  text.firstChild.data = words[problem](why);
  button.textContent = problem === 'login' ? words.reload : words.retry;
  tick();
}

function tick() {
  const left = Math.max(Math.ceil((due - Date.now()) / 1000), 0);
  clock.textContent = now === 'stale' ? words.old(Math.round((Date.now() - heard) / 1000)) : words.next(left);
  if (left === 0 && enabled !== false) {
    ask();
  }
}

// state shows the state of the server.
function state(name) {
  const badge = document.getElementById('state');
  if (badge.lastChild.data !== name) {
    const meaning = { LIVE: 'ok', DRAINING: 'warn' }[name] ?? 'info';
    badge.className = `badge ${meaning}`;
    badge.querySelector('use').setAttribute('href', `#i-${meaning}`);
    badge.lastChild.data = name;
  }
  document.getElementById('draining').hidden = name !== 'DRAINING';
}

async function ask() {
  if (asking || document.hidden) {
    return;
  }
  asking = true;
  let answer = null;
  let body = '';
  let late = false;
  try {
    answer = await fetch('../server_info', { cache: 'no-store', signal: AbortSignal.timeout(patience) });
    body = await answer.text();
  } catch (error) {
    answer = null;
    late = error.name === 'TimeoutError';
  }
  asking = false;
  if (answer?.ok) {
    tries = 0;
    due = Date.now() + usual;
    heard = Date.now();
    enabled = true;
    state(JSON.parse(body).state);
    if (now !== '') {
      show('');
      document.dispatchEvent(new Event('recovered'));
    }
    return;
  }
  if (enabled === null && answer !== null) {
    enabled = false; // this client may not ask
    return;
  }
  enabled = true;
  const wait = Number(answer?.headers.get('retry-after')) || Math.min(2 ** tries, longest);
  tries++;
  due = Date.now() + wait * 1000;
  if (answer === null) {
    show(late ? 'stale' : 'lost');
  } else if (answer.status === 401) {
    show('login');
  } else if (answer.status === 503 || answer.status === 429) {
    show('busy');
  } else {
    show('refused', body.trim());
  }
}

button.addEventListener('click', () => (now === 'login' ? location.reload() : ask()));
document.addEventListener('visibilitychange', ask);
for (const event of ['online', 'focus']) {
  window.addEventListener(event, ask);
}
setInterval(tick, 1000);
ask();
