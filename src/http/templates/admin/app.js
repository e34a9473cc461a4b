// What is live. Every page works without it.

// Elements with `data-live` are shown anew when an event of one of the types it names comes, at most once a
// second, and every so often besides. Such requests do not count as use of the session.
const PAUSE = 1000;
const REST = 15000;

function live(elements) {
  let due = 0;
  let last = Date.now();
  const prefix = document.documentElement.dataset.prefix;

  async function renew() {
    due = 0;
    last = Date.now();
    // What is being filled in, or chosen, is left alone.
    if (document.hidden || elements.some((id) => document.getElementById(id)?.querySelector('form :focus, dialog[open]'))) return;
    try {
      const answer = await fetch(location.href, { headers: { Accept: 'text/html', 'X-Penstock-Live': 'true' } });
      const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
      if (answer.redirected || answer.status === 401) return location.reload();
      if (!answer.ok) return;
      for (const id of elements) swap(document.getElementById(id), page.getElementById(id));
      document.body.classList.remove('stale');
      stops();
    } catch {
      document.body.classList.add('stale');
    }
  }

  // The same element with what is new, the focus where it was.
  function swap(old, fresh) {
    if (!old || !fresh || old.innerHTML === fresh.innerHTML) return;
    const focused = old.contains(document.activeElement) ? path(old, document.activeElement) : null;
    const scrolled = [...old.querySelectorAll('.scroll')].map((e) => e.scrollLeft);
    old.replaceChildren(...document.adoptNode(fresh).childNodes);
    [...old.querySelectorAll('.scroll')].forEach((e, at) => { e.scrollLeft = scrolled[at] ?? 0; });
    if (focused) focused.reduce((e, at) => e?.children[at], old)?.focus({ preventScroll: true });
  }

  function path(root, element) {
    const steps = [];
    for (let e = element; e !== root; e = e.parentElement) steps.unshift([...e.parentElement.children].indexOf(e));
    return steps;
  }

  function soon() {
    if (!due) due = setTimeout(renew, Math.max(0, last + PAUSE - Date.now()));
  }

  const types = new Set(elements.flatMap((id) => document.getElementById(id).dataset.live.split(',')));
  if (types.size) {
    const events = new EventSource(`${prefix}/api/v1/events?types=${[...types].join(',')}`);
    for (const type of [...types, 'penstock.events.lost']) events.addEventListener(type, soon);
    addEventListener('pagehide', () => events.close());
  }
  setInterval(() => { if (Date.now() - last >= REST) soon(); }, REST / 3);
  document.addEventListener('visibilitychange', soon);
}

const elements = [...document.querySelectorAll('[data-live]')].map((element) => element.id);
if (elements.length) live(elements);

// Buttons that copy what the element of their `data-copy` holds. Without script it can be marked.
for (const button of document.querySelectorAll('[data-copy]')) {
  const source = document.getElementById(button.dataset.copy);
  button.hidden = false;
  button.addEventListener('click', async () => {
    try {
      await navigator.clipboard.writeText(source.textContent.trim());
      button.textContent = 'Copied';
    } catch {
      getSelection().selectAllChildren(source);
      button.textContent = 'Marked: copy it now';
    }
  });
}

// After a form that came back with faults, the summary is read first.
document.getElementById('faults')?.focus();

// A table that fits needs no stop of the Tab key.
function stops() {
  for (const box of document.querySelectorAll('.scroll')) {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    else box.removeAttribute('tabindex');
  }
}
stops();
addEventListener('resize', stops);
