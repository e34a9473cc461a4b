// The query page: runs queries without a reload, and shows the schema. Without this script the form is sent.

const form = document.getElementById('query-form');
const result = document.getElementById('result');
const statusLine = document.getElementById('told');
let pending = null;

async function runQuery() {
  pending?.abort();
  const request = new AbortController();
  pending = request;
  const { query, variables } = form.elements;
  let body = `{"query":${JSON.stringify(query.value)}`;
  if (variables.value.trim()) {
    try {
      JSON.parse(variables.value);
      // Sent as typed, so that numbers keep all their digits.
      body += `,"variables":${variables.value}`;
    } catch (error) {
      statusLine.textContent = `The variables are not JSON: ${error.message}`;
      variables.focus();
      return;
    }
  }
  const begun = performance.now();
  statusLine.textContent = 'Running …';
  try {
    const answer = await fetch(form.dataset.graphql, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', Accept: 'application/graphql-response+json, application/json;q=0.9' },
      body: `${body}}`,
      signal: request.signal,
    });
    const text = await answer.text();
    result.textContent = formatJson(text);
    const faults = /"errors":/.test(text) ? ', with errors' : '';
    // 400 is the answer to a query with errors.
    if (answer.ok || answer.status === 400) statusLine.textContent = `Completed in ${Math.round(performance.now() - begun)} ms${faults}.`;
    else if (answer.status === 401) statusLine.textContent = 'Your session has ended; sign in again.';
    else statusLine.textContent = `The gateway answered with status ${answer.status}; the query was not completed.`;
  } catch (error) {
    if (error.name !== 'AbortError') statusLine.textContent = 'The gateway does not respond.';
  }
}

// Inserts white space without changing tokens: numbers keep all their digits.
function formatJson(text) {
  const out = [];
  let depth = 0;
  let opened = false;
  const line = () => out.push('\n', '  '.repeat(depth));
  for (const token of text.match(/"(?:\\.|[^"\\])*"|[{}[\]:,]|[^\s"{}[\]:,]+/g) ?? []) {
    const closes = token === '}' || token === ']';
    if (closes) depth -= 1;
    if (opened !== closes) line();
    opened = token === '{' || token === '[';
    if (opened) depth += 1;
    out.push(token === ':' ? ': ' : token);
    if (token === ',') line();
  }
  return out.join('');
}

form.addEventListener('submit', (event) => { event.preventDefault(); runQuery(); });
form.addEventListener('keydown', (event) => {
  if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) { event.preventDefault(); runQuery(); }
});
for (const element of document.querySelectorAll('.with-script')) element.hidden = false;

document.getElementById('sdl').addEventListener('toggle', async (event) => {
  const place = event.target.querySelector('pre');
  if (!event.target.open || place.dataset.loaded) return;
  try {
    const answer = await fetch(form.dataset.schema);
    if (!answer.ok) return;
    place.textContent = await answer.text();
    place.dataset.loaded = 'true';
  } catch { /* The link stays. */ }
});
