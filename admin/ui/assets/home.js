// The home page works without scripts. With them it leaves out fields that are
// empty or have their default, sends parameters whose name is typed, and asks
// before it sends a request that changes the server.

const words = {
  ask: (command) => `Send POST ${command}?`,
  type: (allowed) => `This cannot be undone. Type ${allowed.join(' or ')} to continue.`,
  cancel: 'Cancel',
  send: 'Send',
};

const element = (name, properties = {}, ...children) => {
  const e = document.createElement(name);
  Object.assign(e, properties);
  e.append(...children);
  return e;
};

// confirmed resolves to whether the user agrees. Where some words are allowed,
// one of them must be typed.
function confirmed(command, allowed) {
  return new Promise((resolve) => {
    const cancel = element('button', { type: 'button', textContent: words.cancel });
    const send = element('button', { type: 'submit', textContent: words.send, className: 'mutation' });
    const title = element('h2', { id: 'confirm-title', textContent: words.ask(command) });
    const form = element('form', { method: 'dialog' }, title);
    const dialog = element('dialog', { id: 'confirm' }, form);
    dialog.setAttribute('aria-labelledby', title.id);
    let input = null;
    if (allowed.length > 0) {
      input = element('input', { type: 'text', id: 'confirm-word', autocomplete: 'off' });
      form.append(element('label', { htmlFor: input.id, textContent: words.type(allowed) }), input);
      send.disabled = true;
      input.addEventListener('input', () => { send.disabled = !allowed.includes(input.value); });
    }
    form.append(element('div', { className: 'choices' }, cancel, send));
    let agreed = false;
    cancel.addEventListener('click', () => dialog.close());
    form.addEventListener('submit', (event) => {
      if (input !== null && !allowed.includes(input.value)) {
        event.preventDefault();
        return;
      }
      agreed = true;
    });
    dialog.addEventListener('close', () => {
      dialog.remove();
      resolve(agreed);
    });
    document.body.append(dialog);
    dialog.showModal();
    (input ?? cancel).focus();
  });
}

for (const form of document.querySelectorAll('form')) {
  form.addEventListener('formdata', (event) => {
    const reads = form.getAttribute('method') !== 'post';
    for (const e of form.elements) {
      const initial = reads && e.localName === 'select' ? e.options[0].value : '';
      if (e.name && (e.value === '' || e.value === initial)) {
        event.formData.delete(e.name);
      }
    }
    // A parameter whose name is typed: its value counts even if it is empty.
    const [key, value] = ['key', 'value'].map((part) => [...form.elements].find((e) => e.dataset.pair === part));
    if (key && key.value !== '') {
      event.formData.append(key.value, value.value);
    }
  });
  if (form.getAttribute('method') !== 'post') {
    continue;
  }
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    const opener = event.submitter;
    const allowed = [form.dataset.word, form.dataset.node].filter((word) => word);
    if (await confirmed(form.getAttribute('action'), form.dataset.word ? allowed : [])) {
      form.submit();
    } else if (opener !== null) {
      opener.focus();
    }
  });
}
document.documentElement.dataset.ready = 'yes';
