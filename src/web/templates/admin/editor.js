// The editor of a Business Object: checks the mapping and the sample while they are typed, and marks errors
// at their lines. The server does the check. Without this script, the form has a button for it.
import { connectCompletion } from './complete.js';
import { connectLines, numberLines, selectPlace } from './lines.js';

const PAUSE = 400;
// Until a check that failed is repeated.
const RETRY = 5000;
const form = document.getElementById('editor');
const config = document.getElementById('config');
const sample = document.getElementById('sample');

function markLines() {
  numberLines(config, new Set(document.getElementById('checked').dataset.lines.split(' ').filter(Boolean).map(Number)));
  showErrorOfLine();
}

// Shows the error of the line in which the user types, otherwise the first one, right below the text.
const lineError = document.createElement('p');
lineError.className = 'wrong';
lineError.id = 'line-error';
lineError.hidden = true;
config.setAttribute('aria-describedby', [config.getAttribute('aria-describedby'), lineError.id].filter(Boolean).join(' '));
config.closest('.field').append(lineError);

function showErrorOfLine() {
  const errors = [...document.querySelectorAll('#checked .errors a[data-line]')];
  const line = config.value.slice(0, config.selectionStart).split('\n').length;
  const here = errors.find((link) => Number(link.dataset.line) === line) ?? errors[0];
  lineError.hidden = !here;
  if (here) lineError.textContent = here.parentElement.textContent.trim();
}
for (const type of ['selectionchange', 'keyup', 'click']) config.addEventListener(type, showErrorOfLine);

// Requests a check. A pending request for an older text is cancelled.
let timer = 0;
let pending = null;

async function requestCheck() {
  pending?.abort();
  const request = new AbortController();
  pending = request;
  try {
    const answer = await fetch(form.dataset.check, { method: 'POST', body: new URLSearchParams(new FormData(form)), signal: request.signal });
    if (answer.status === 401) return showMessage('Your session has ended. Copy what you have written, and sign in again.');
    if (answer.status === 413) return showMessage('The form is too large to be checked. Shorten the sample data.');
    const why = `The gateway answered with status ${answer.status}.`;
    if (answer.status === 429 || answer.status >= 500) return retryLater(why);
    if (!answer.ok) return showMessage(why);
    const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
    const fresh = page.getElementById('checked');
    const old = document.getElementById('checked');
    if (!fresh) return;
    // Keeps opened details open.
    const open = new Map([...old.querySelectorAll('details')].map((e) => [e.firstElementChild.textContent, e.open]));
    for (const e of fresh.querySelectorAll('details')) e.open = open.get(e.firstElementChild.textContent) ?? e.open;
    old.dataset.lines = fresh.dataset.lines;
    old.replaceChildren(...document.adoptNode(fresh).childNodes);
    document.getElementById('runs').replaceWith(document.adoptNode(page.getElementById('runs')));
    markLines();
  } catch (error) {
    if (error.name !== 'AbortError') retryLater('The gateway does not respond.');
  }
}

function retryLater(why) {
  showMessage(`${why} The check continues when it can.`);
  clearTimeout(timer);
  timer = setTimeout(requestCheck, RETRY);
}

function showMessage(words) {
  const line = document.createElement('p');
  line.className = 'verdict warn';
  line.setAttribute('role', 'status');
  line.textContent = words;
  const checked = document.getElementById('checked');
  checked.replaceChildren(line);
  // The marks are of an earlier text.
  checked.dataset.lines = '';
  markLines();
}

function checkSoon() {
  clearTimeout(timer);
  timer = setTimeout(requestCheck, PAUSE);
}

config.addEventListener('input', markLines);
connectCompletion(config, sample);
connectLines(config, /:\s*$/);
// Warnings depend on every field, so every input causes a check.
form.addEventListener('input', checkSoon);

// The link of an error selects its place in the mapping.
form.addEventListener('click', (event) => {
  const link = event.target.closest('a[data-line]');
  if (!link) return;
  event.preventDefault();
  selectPlace(config, Number(link.dataset.line), Number(link.dataset.column));
});

// Removes the button Check, which the Enter key in a field would press.
form.querySelector('.without-script').remove();
markLines();
// Also checks what was typed before this script ran, or what the browser restored.
if (config.value !== config.defaultValue || sample.value !== sample.defaultValue) checkSoon();
