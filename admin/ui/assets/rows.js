// What can be copied of a row of stats, by buttons in the row that has the pointer or the
// focus; and the last filters.
const module = (name) => import(document.querySelector(`script[src$="/${name}"]`).src);
const { rowOf, nameOf, say, element, stored } = await module('admin.js');

const words = {
  copy: 'Copy',
  name: ['Name', 'Copy the name'],
  value: ['Value', 'Copy the exact value'],
  exposition: ['Exposition', 'Copy the lines of the Prometheus exposition'],
  copied: 'Copied',
  failed: 'Not copied',
};

const exactly = (name) => `^${name.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')}$`;
const texts = {
  name: nameOf,
  value: (row) => row.querySelector('[data-stat]')?.dataset.value ?? '',
  exposition: async (row) => {
    const answer = await fetch(`../stats/prometheus?text_readouts&filter=${encodeURIComponent(exactly(nameOf(row)))}`);
    if (!answer.ok) {
      throw new Error(answer.status);
    }
    return answer.text();
  },
};

const tools = document.createElement('span');
tools.className = 'copies';
tools.append(words.copy);
for (const what of Object.keys(texts)) {
  const button = document.createElement('button');
  button.type = 'button';
  [button.textContent, button.title] = words[what];
  button.setAttribute('aria-label', button.title);
  button.addEventListener('click', async () => {
    let done = words.copied;
    try {
      await navigator.clipboard.writeText(await texts[what](rowOf(button)));
    } catch {
      done = words.failed;
    }
    say(done);
    button.textContent = done;
    setTimeout(() => { [button.textContent] = words[what]; }, 1500);
  });
  tools.append(button);
}

function offer({ target }) {
  const row = navigator.clipboard && rowOf(target);
  if (row && !row.classList.contains('gone') && !row.contains(tools) && (!tools.contains(document.activeElement) || target === document.activeElement)) {
    row.cells[0].append(tools);
  }
}
document.addEventListener('focusin', offer);
document.addEventListener('pointerover', offer, { passive: true });
// remember offers the last filters again.
function remember() {
  const input = document.querySelector('#controls [name="filter"]');
  if (input.hasAttribute('list')) {
    return;
  }
  const list = () => JSON.parse(stored('filters') ?? '[]');
  const options = element('datalist', { id: 'filters' });
  const offer = () => options.replaceChildren(...list().map((value) => element('option', { value })));
  offer();
  input.after(options);
  input.setAttribute('list', options.id);
  input.addEventListener('change', () => {
    if (input.value && !document.getElementById('filter-error')) {
      stored('filters', JSON.stringify([input.value, ...list().filter((x) => x !== input.value)].slice(0, 20)));
      offer();
    }
  });
}

document.addEventListener('replaced', remember);
remember();
document.documentElement.dataset.rows = 'yes';
