// The editor of a shapes graph: shows line numbers, and marks the errors that the server found. Without this script,
// the form works and the errors are listed with their lines.
import { connectLines, numberLines, selectPlace } from './lines.js';

const form = document.getElementById('shapes-form');
const text = document.getElementById('text');
const wrong = new Set(text.dataset.lines.split(' ').filter(Boolean).map(Number));

numberLines(text, wrong);
connectLines(text, /[{[(]\s*$/);
text.addEventListener('input', () => numberLines(text, new Set()));

// The link of an error selects its place in the text.
form.addEventListener('click', (event) => {
  const link = event.target.closest('a[data-line]');
  if (!link) return;
  event.preventDefault();
  selectPlace(text, Number(link.dataset.line), Number(link.dataset.column));
});
