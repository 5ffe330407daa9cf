// The home page works without scripts. With them it leaves empty fields out of
// requests, and asks before it sends something that changes the server.

const words = {
  ask: (command) => `Send POST ${command}?`,
  type: (allowed) => `This cannot be taken back. Type ${allowed.join(' or ')} to go on.`,
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
    for (const [name, value] of [...event.formData]) {
      if (value === '') {
        event.formData.delete(name);
      }
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
