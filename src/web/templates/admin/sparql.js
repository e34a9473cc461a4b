// The SPARQL page: runs queries without a reload, shows solutions and triples as a table, and draws small graphs.
import { connectLines, numberLines, selectPlace } from './lines.js';

const MAX_SHOWN_ROWS = 1000;
const MAX_DRAWN_NODES = 60;
const RDF_TYPE = 'http://www.w3.org/1999/02/22-rdf-syntax-ns#type';
const XSD = 'http://www.w3.org/2001/XMLSchema#';

const form = document.getElementById('sparql-form');
const query = document.getElementById('query');
const statusLine = document.getElementById('told');
const result = document.getElementById('result');
const warnings = document.getElementById('warnings');
const drawing = document.getElementById('drawing');
const cancel = document.getElementById('cancel');
const download = document.getElementById('download');
const site = document.documentElement.dataset.prefix;
let pending = null;
let received = null;

async function runQuery() {
  pending?.abort();
  const request = new AbortController();
  pending = request;
  const text = query.value;
  const begun = performance.now();
  cancel.hidden = false;
  numberLines(query, new Set());
  tell('Running …');
  try {
    const answer = await send(text, request.signal);
    const body = await answer.text();
    const elapsed = Math.round(performance.now() - begun);
    if (answer.ok) {
      show(answer.headers.get('Content-Type').split(';')[0], body, readPrefixes(text), elapsed);
      warn(answer.headers.get('Penstock-Warning'));
    } else showProblem(answer.status, body);
  } catch (error) {
    if (error.name === 'AbortError') {
      if (pending === request) tell('Cancelled.');
    } else {
      tell('The gateway does not respond, or ended the answer early. Its log has the cause.', true);
    }
  }
  if (pending === request) cancel.hidden = true;
}

function send(text, signal) {
  return fetch(form.dataset.sparql, {
    method: 'POST',
    headers: { 'Content-Type': 'application/sparql-query', Accept: 'application/sparql-results+json, application/n-triples' },
    body: text,
    signal,
  });
}

function tell(words, isWrong = false) {
  statusLine.textContent = words;
  statusLine.className = isWrong ? 'wrong' : 'faint';
}

function clearResult() {
  received = null;
  download.hidden = true;
  drawing.hidden = true;
  warnings.replaceChildren();
  result.replaceChildren();
}

// Shows what is valid in the query and probably not meant.
function warn(words) {
  if (!words) return;
  const line = document.createElement('p');
  line.className = 'wrong';
  line.textContent = words;
  warnings.replaceChildren(line);
}

// Shows the error of a query, with its place in the text.
function showProblem(status, body) {
  clearResult();
  if (status === 401) return tell('Your session has ended. Copy your query, and sign in again.', true);
  let problem = {};
  try { problem = JSON.parse(body); } catch { /* Not from the gateway. */ }
  const finding = problem.errors?.find((one) => one.line);
  const words = finding ? `Line ${finding.line}, column ${finding.column}: ${finding.message}` : problem.detail ?? `The gateway answered with status ${status}.`;
  tell(words, true);
  if (finding) {
    numberLines(query, new Set([finding.line]));
    selectPlace(query, finding.line, finding.column);
  }
}

function show(type, body, prefixes, elapsed) {
  clearResult();
  received = { type, body };
  download.hidden = false;
  if (type === 'application/n-triples') {
    const triples = parseTriples(body);
    drawGraph(triples, prefixes);
    showRows(['subject', 'predicate', 'object'], triples, prefixes);
    return tell(`${count(triples.length, 'triple')} in ${elapsed} ms.${shownOf(triples.length)}`);
  }
  const answer = JSON.parse(body);
  if ('boolean' in answer) return tell(`${answer.boolean ? 'Yes' : 'No'}, in ${elapsed} ms.`);
  const columns = answer.head.vars;
  const rows = answer.results.bindings.map((row) => columns.map((column) => row[column]));
  if (columns.length === 3 && rows.every((row) => row.every(Boolean) && row[1].type === 'uri')) drawGraph(rows, prefixes);
  showRows(columns, rows, prefixes);
  return tell(`${count(rows.length, 'row')} in ${elapsed} ms.${shownOf(rows.length)}`);
}

function count(number, word) {
  return `${number.toLocaleString('en')} ${word}${number === 1 ? '' : 's'}`;
}

function shownOf(rows) {
  return rows > MAX_SHOWN_ROWS ? ` The first ${MAX_SHOWN_ROWS.toLocaleString('en')} are shown; Download has all.` : '';
}

function showRows(columns, rows, prefixes) {
  if (!rows.length) return;
  const table = document.createElement('table');
  const head = table.createTHead().insertRow();
  for (const column of columns) {
    const cell = document.createElement('th');
    cell.scope = 'col';
    cell.textContent = column;
    head.append(cell);
  }
  const body = table.createTBody();
  for (const row of rows.slice(0, MAX_SHOWN_ROWS)) {
    const line = body.insertRow();
    for (const term of row) {
      const cell = line.insertCell();
      if (term) cell.append(...termNodes(term, prefixes));
    }
  }
  result.replaceChildren(table);
}

// Returns what a cell shows: an IRI links to its object, a literal has its language or datatype behind it.
function termNodes(term, prefixes) {
  if (term.type === 'uri') {
    const link = document.createElement('a');
    link.href = `${site}/admin/object?uri=${encodeURIComponent(term.value)}`;
    link.textContent = shorten(term.value, prefixes);
    link.title = term.value;
    return [link];
  }
  const value = document.createElement('span');
  value.className = 'value';
  value.textContent = term.type === 'bnode' ? `_:${term.value}` : term.value;
  const kind = term['xml:lang'] ? `@${term['xml:lang']}` : term.datatype && term.datatype !== `${XSD}string` ? shorten(term.datatype, { xsd: XSD, ...prefixes }) : '';
  if (!kind) return [value];
  const note = document.createElement('span');
  note.className = 'faint small';
  note.textContent = ` ${kind}`;
  return [value, note];
}

function readPrefixes(text) {
  const prefixes = {};
  for (const [, name, iri] of text.matchAll(/prefix\s+([\w.-]*):\s*<([^<>\s]*)>/gi)) prefixes[name] = iri;
  return prefixes;
}

function shorten(iri, prefixes) {
  const fitting = Object.entries(prefixes).filter(([, base]) => base && iri.startsWith(base) && /^[\w./-]*$/.test(iri.slice(base.length)));
  const longest = fitting.sort((a, b) => b[1].length - a[1].length)[0];
  return longest ? `${longest[0]}:${iri.slice(longest[1].length)}` : iri;
}

// Parses N-Triples (RDF 1.1 N-Triples), as the gateway writes it.
function parseTriples(text) {
  const pattern = /(?:<([^>]*)>|_:(\S+)|"((?:[^"\\]|\\.)*)"(?:@([\w-]+)|\^\^<([^>]*)>)?)\s*/gy;
  return text.split('\n').filter(Boolean).map((line) => {
    pattern.lastIndex = 0;
    return [0, 1, 2].map(() => {
      const [, iri, node, literal, language, datatype] = pattern.exec(line);
      if (iri !== undefined) return { type: 'uri', value: unescapeText(iri) };
      if (node !== undefined) return { type: 'bnode', value: node };
      return { type: 'literal', value: unescapeText(literal), 'xml:lang': language, datatype };
    });
  });
}

function unescapeText(text) {
  const known = { t: '\t', n: '\n', r: '\r', b: '\b', f: '\f' };
  return text.replace(/\\(?:u([\da-fA-F]{4})|U([\da-fA-F]{8})|(.))/g, (_, short, long, one) => (one ? known[one] ?? one : String.fromCodePoint(parseInt(short ?? long, 16))));
}

// Draws triples whose objects are IRIs or blank nodes, if there are few nodes.
function drawGraph(triples, prefixes) {
  const links = triples.filter(([, predicate, object]) => object.type !== 'literal' && predicate.value !== RDF_TYPE);
  const names = [...new Set(links.flatMap(([subject, , object]) => [subject.value, object.value]))];
  if (!names.length || names.length > MAX_DRAWN_NODES) return;
  const places = layOut(names.length, links.map(([subject, , object]) => [names.indexOf(subject.value), names.indexOf(object.value)]));
  const svg = element('svg', { viewBox: '-40 -30 1080 660', role: 'group', 'aria-label': `A drawing of ${count(names.length, 'node')} and ${count(links.length, 'link')}; the table below has the same` });
  const marker = element('marker', { id: 'arrow', viewBox: '0 0 8 8', refX: 16, refY: 4, markerWidth: 8, markerHeight: 8, orient: 'auto' });
  marker.append(element('path', { d: 'M0,0 L8,4 L0,8 z', class: 'arrow' }));
  svg.append(marker);
  for (const [subject, predicate, object] of links) {
    const [from, to] = [subject, object].map((term) => places[names.indexOf(term.value)]);
    svg.append(element('line', { x1: from.x, y1: from.y, x2: to.x, y2: to.y, 'marker-end': 'url(#arrow)' }));
    svg.append(label(predicate.value, prefixes, { x: (from.x + to.x) / 2, y: (from.y + to.y) / 2 - 3, class: 'edge' }));
  }
  names.forEach((name, at) => {
    const { x, y } = places[at];
    const node = element('a', { href: `${site}/admin/object?uri=${encodeURIComponent(name)}` });
    node.append(element('circle', { cx: x, cy: y, r: 7 }), label(name, prefixes, { x, y: y - 11 }));
    svg.append(node);
  });
  drawing.replaceChildren(svg);
  drawing.hidden = false;
}

function element(name, attributes) {
  const made = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

function label(iri, prefixes, attributes) {
  const text = element('text', attributes);
  const short = shorten(iri, prefixes);
  text.textContent = short === iri ? iri.split(/[/#]/).filter(Boolean).pop() : short;
  return text;
}

// Places nodes so that links are short and nodes are apart (Fruchterman and Reingold, 1991). Always the same places for
// the same graph.
function layOut(nodes, links) {
  const [width, height] = [1000, 600];
  const places = Array.from({ length: nodes }, (_, at) => ({ x: width / 2 + 250 * Math.cos(at * 2.4) * Math.sqrt((at + 1) / nodes), y: height / 2 + 200 * Math.sin(at * 2.4) * Math.sqrt((at + 1) / nodes) }));
  const ideal = 0.8 * Math.sqrt((width * height) / nodes);
  for (let heat = width / 8; heat > 1; heat *= 0.96) {
    const moves = places.map(() => ({ x: 0, y: 0 }));
    const push = (a, b, force) => {
      const dx = places[a].x - places[b].x;
      const dy = places[a].y - places[b].y;
      const distance = Math.hypot(dx, dy) || 0.01;
      const strength = force(distance) / distance;
      moves[a].x += dx * strength;
      moves[a].y += dy * strength;
      moves[b].x -= dx * strength;
      moves[b].y -= dy * strength;
    };
    for (let a = 0; a < nodes; a += 1) for (let b = a + 1; b < nodes; b += 1) push(a, b, (distance) => (ideal * ideal) / distance);
    for (const [a, b] of links) if (a !== b) push(a, b, (distance) => -(distance * distance) / ideal);
    places.forEach((place, at) => {
      const length = Math.hypot(moves[at].x, moves[at].y) || 1;
      place.x = Math.min(width, Math.max(0, place.x + (moves[at].x / length) * Math.min(length, heat)));
      place.y = Math.min(height, Math.max(0, place.y + (moves[at].y / length) * Math.min(length, heat)));
    });
  }
  return places;
}

form.addEventListener('submit', (event) => { event.preventDefault(); runQuery(); });
form.addEventListener('keydown', (event) => {
  if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) { event.preventDefault(); runQuery(); }
});
cancel.addEventListener('click', () => pending?.abort());
download.addEventListener('click', () => {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([received.body], { type: received.type }));
  link.download = received.type === 'application/n-triples' ? 'result.nt' : 'result.json';
  link.click();
  URL.revokeObjectURL(link.href);
});
document.getElementById('example').addEventListener('change', (event) => {
  if (!event.target.value) return;
  query.value = `${form.dataset.prefixes}${event.target.value}`;
  event.target.value = '';
  numberLines(query, new Set());
  query.focus();
});
query.addEventListener('input', () => numberLines(query, new Set()));
connectLines(query, /[{(]\s*$/);
numberLines(query, new Set());
for (const hidden of document.querySelectorAll('.with-script')) hidden.hidden = false;
