// The page "Explore": its parts load on their own, so that the table never waits; a range of the bars narrows the page; values
// are suggested. The page works without this script.
import { createChoices } from './choices.js';

const page = document.getElementById('explore');

// Forms send their fields; the address has the state, so that a link shows others the same. A further page has a cursor.
if (!new URLSearchParams(location.search).has('cursor')) history.replaceState(null, '', page.dataset.address + location.hash);

// Times are in the time zone of the browser, which the server learns from a cookie.
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
const findZone = () => document.cookie.split('; ').find((cookie) => cookie.startsWith('penstock_zone='))?.split('=')[1];
if (zone && findZone() !== encodeURIComponent(zone)) {
  document.cookie = `penstock_zone=${encodeURIComponent(zone)}; path=${page.dataset.zonePath}; max-age=31536000; samesite=lax`;
  if (zone !== page.dataset.zone && findZone() === encodeURIComponent(zone)) location.reload();
}

function say(place, words, button) {
  const line = document.createElement('p');
  line.className = 'faint';
  line.append(words, ...(button ? [' ', button] : []));
  place.replaceChildren(line);
}

async function load(place) {
  place.setAttribute('aria-busy', 'true');
  say(place, 'Loading …');
  try {
    const answer = await fetch(place.dataset.part, { headers: { Accept: 'text/html' } });
    if (!answer.ok || answer.redirected) throw new Error(answer.statusText);
    const part = new DOMParser().parseFromString(await answer.text(), 'text/html');
    place.replaceChildren(...document.adoptNode(part.body).childNodes);
    brush(place);
  } catch {
    const again = document.createElement('button');
    again.type = 'button';
    again.className = 'plain';
    again.textContent = 'Retry';
    again.addEventListener('click', () => load(place));
    say(place, 'This could not be loaded.', again);
  }
  place.removeAttribute('aria-busy');
}
for (const place of document.querySelectorAll('[data-part]')) load(place);
brush(document);

// A range of the bars narrows the page to its objects. The dates and the table below the bars do the same for the keyboard.
function brush(place) {
  const figure = place.querySelector('figure[data-limits]');
  if (!figure) return;
  const svg = figure.querySelector('svg');
  const form = figure.parentElement.querySelector('form');
  const limits = figure.dataset.limits.split(' ');
  const { width, height } = svg.viewBox.baseVal;
  const step = width / (limits.length - 1);
  const band = document.createElementNS('http://www.w3.org/2000/svg', 'rect');
  band.setAttribute('class', 'band');
  band.setAttribute('height', height);
  let first = -1;
  const find = (event) => {
    const box = svg.getBoundingClientRect();
    const place = Math.floor(((event.clientX - box.left) / box.width) * (limits.length - 1));
    return Math.min(Math.max(place, 0), limits.length - 2);
  };
  const draw = (one, other) => {
    band.setAttribute('x', Math.min(one, other) * step);
    band.setAttribute('width', (Math.abs(one - other) + 1) * step);
    svg.append(band);
  };
  svg.classList.add('brushed');
  svg.addEventListener('pointerdown', (event) => {
    if (event.button) return;
    first = find(event);
    svg.setPointerCapture(event.pointerId);
    draw(first, first);
  });
  svg.addEventListener('pointermove', (event) => { if (first >= 0) draw(first, find(event)); });
  svg.addEventListener('pointercancel', () => { first = -1; band.remove(); });
  svg.addEventListener('pointerup', (event) => {
    if (first < 0) return;
    const [from, to] = [Math.min(first, find(event)), Math.max(first, find(event))];
    // The browser may keep the page as it is now, for the way back.
    first = -1;
    band.remove();
    const parameters = new URLSearchParams(new FormData(form));
    for (const name of ['from', 'to', 'offset']) parameters.delete(name);
    parameters.append(figure.dataset.least, limits[from]);
    parameters.append(figure.dataset.before, limits[to + 1]);
    location.assign(`${form.getAttribute('action')}?${parameters}`);
  });
}

// Values that begin like what somebody types.
const { elements: { field, text }, dataset: { suggestions } } = document.getElementById('filter-form');
const { list, show, press } = createChoices(text, { id: 'suggestions', label: 'Suggestions', insert });
text.setAttribute('role', 'combobox');
text.setAttribute('aria-expanded', false);
text.after(list);
let timer = 0;
let lastAsked = 0;
let offered = [];

function offer(values) {
  // What was asked for earlier comes too late.
  lastAsked += 1;
  clearTimeout(timer);
  offered = values;
  show(values.map(({ value, label }) => (label ? [label, whole(value)] : [value])));
}

// The value that a label stands for.
function whole(value) {
  const line = document.createElement('span');
  line.className = 'faint small';
  line.append(value);
  return line;
}

function insert(index) {
  text.value = offered[index].value;
  offer([]);
}

async function suggest() {
  clearTimeout(timer);
  const asked = ++lastAsked;
  let options = [];
  try {
    const answer = await fetch(`${suggestions}?${new URLSearchParams({ field: field.value, text: text.value })}`, { headers: { Accept: 'text/html' } });
    if (answer.ok && !answer.redirected) options = [...new DOMParser().parseFromString(await answer.text(), 'text/html').querySelectorAll('option')];
  } catch {
    // Without suggestions, the value can be typed.
  }
  if (asked === lastAsked) offer(options.map((option) => ({ value: option.value, label: option.textContent })));
}

text.addEventListener('input', () => {
  clearTimeout(timer);
  timer = setTimeout(suggest, 150);
});
text.addEventListener('click', suggest);
text.addEventListener('blur', () => offer([]));
field.addEventListener('change', () => offer([]));
text.addEventListener('keydown', (event) => {
  if (event.isComposing) return;
  if (event.key === 'ArrowDown' && list.hidden) suggest();
  else if (!press(event.key)) return;
  event.preventDefault();
});
