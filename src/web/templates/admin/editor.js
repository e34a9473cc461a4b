// The editor of a Business Object: checks the mapping and the sample while they are typed, and marks errors
// at their lines. The server does the check. Without this script, the form has a button for it.

const PAUSE = 400;
const form = document.getElementById('editor');
const config = document.getElementById('config');
const sample = document.getElementById('sample');
const gutter = form.querySelector('.gutter');

// Shows line numbers, and marks lines with errors.
function numberLines() {
  const wrong = new Set(document.getElementById('checked').dataset.lines.split(' ').filter(Boolean).map(Number));
  const lines = config.value.split('\n').length;
  const rows = [];
  for (let line = 1; line <= lines; line += 1) {
    const row = document.createElement('div');
    row.textContent = wrong.has(line) ? `✗ ${line}` : line;
    if (wrong.has(line)) row.className = 'fault';
    rows.push(row);
  }
  gutter.replaceChildren(...rows);
  gutter.scrollTop = config.scrollTop;
  config.toggleAttribute('data-faulty', wrong.size > 0);
}

// Requests a check. A pending request for an older text is cancelled.
let timer = 0;
let pending = null;

async function requestCheck() {
  pending?.abort();
  const request = new AbortController();
  pending = request;
  try {
    const answer = await fetch(form.dataset.check, { method: 'POST', body: new URLSearchParams(new FormData(form)), signal: request.signal });
    if (!answer.ok) {
      if (answer.status === 401) showMessage('Your session has ended. Copy what you have written, and sign in again.');
      return;
    }
    const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
    const fresh = page.getElementById('checked');
    const old = document.getElementById('checked');
    if (!fresh) return;
    // Keeps opened details open.
    const open = new Map([...old.querySelectorAll('details')].map((e) => [e.firstElementChild.textContent, e.open]));
    for (const e of fresh.querySelectorAll('details')) e.open = open.get(e.firstElementChild.textContent) ?? e.open;
    old.dataset.lines = fresh.dataset.lines;
    old.replaceChildren(...document.adoptNode(fresh).childNodes);
    numberLines();
  } catch (error) {
    if (error.name !== 'AbortError') showMessage('The gateway does not respond. The check continues when it does.');
  }
}

function showMessage(words) {
  const line = document.createElement('p');
  line.className = 'verdict warn';
  line.setAttribute('role', 'status');
  line.textContent = words;
  document.getElementById('checked').replaceChildren(line);
}

function checkSoon() {
  clearTimeout(timer);
  timer = setTimeout(requestCheck, PAUSE);
}

config.addEventListener('input', numberLines);
config.addEventListener('scroll', () => { gutter.scrollTop = config.scrollTop; });
// Warnings depend on every field, so every input causes a check.
form.addEventListener('input', checkSoon);

// The link of an error selects its place in the mapping.
form.addEventListener('click', (event) => {
  const link = event.target.closest('a[data-line]');
  if (!link) return;
  event.preventDefault();
  const lines = config.value.split('\n');
  const line = Math.min(Number(link.dataset.line), lines.length) - 1;
  const begin = lines.slice(0, line).reduce((sum, text) => sum + text.length + 1, 0);
  const column = [...lines[line]].slice(0, Number(link.dataset.column) - 1).join('').length;
  config.focus();
  config.setSelectionRange(begin + column, begin + lines[line].length);
  config.scrollTop = Math.max(0, line * parseFloat(getComputedStyle(config).lineHeight) - config.clientHeight / 3);
});

// A new line gets the indentation of the previous one.
config.addEventListener('keydown', (event) => {
  if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
  const before = config.value.slice(0, config.selectionStart).split('\n').pop();
  const indent = before.match(/^ */)[0] + (/:\s*$/.test(before) ? '  ' : '');
  if (!indent) return;
  event.preventDefault();
  // Unlike `setRangeText`, this can be undone by the user.
  document.execCommand('insertText', false, `\n${indent}`);
});

// Asks the user before unsaved changes are lost.
let changed = false;
form.addEventListener('input', () => { changed = true; });
form.addEventListener('submit', () => { changed = false; });
addEventListener('beforeunload', (event) => { if (changed) event.preventDefault(); });

// Removes the button Check, which the Enter key in a field would press.
form.querySelector('.without-script').remove();
document.body.classList.add('scripted');
numberLines();
// Also checks what was typed before this script ran, or what the browser restored.
if (config.value !== config.defaultValue || sample.value !== sample.defaultValue) checkSoon();
