// Live pages. Every page works without this script.

// The content of elements with `data-live` is replaced when an event of one of their types arrives, at most once in
// MIN_INTERVAL milliseconds, and at least once in MAX_INTERVAL milliseconds. These requests do not keep the session alive.
// They fetch the address in `data-from`, or else the page itself. A page without such elements in its main part has no
// stream of events, because browsers open only a few connections to a server.
const MIN_INTERVAL = 1000;
const MAX_INTERVAL = 15000;

const prefix = document.documentElement.dataset.prefix;

function refreshOnEvents(elements) {
  let timer = 0;
  let last = Date.now();
  let current = last;
  let hasLeft = false;

  // An element in which the user is typing, choosing or pressing something is not replaced, nor a page that nobody sees.
  function isKept() {
    return document.hidden || elements.some((id) => document.getElementById(id)?.querySelector('form :focus, :active, dialog[open]'));
  }

  async function refresh() {
    timer = 0;
    last = Date.now();
    if (isKept()) return;
    const from = elements.map((id) => document.getElementById(id)?.dataset.from);
    // The page itself has all of them.
    const addresses = from.includes(undefined) ? [location.href] : new Set(from);
    try {
      for (const address of addresses) {
        const answer = await fetch(address, { headers: { Accept: 'text/html', 'X-Penstock-Live': 'true' } });
        const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
        if (answer.redirected || [401, 404].includes(answer.status)) return leave(answer.status !== 404);
        if (!answer.ok) return showStale(`The gateway answered with status ${answer.status}.`);
        if (isKept()) return refreshSoon();
        for (const id of elements) replaceContent(document.getElementById(id), page.getElementById(id));
      }
      current = last;
      showStale('');
      listen();
      setTabStops();
    } catch {
      showStale('The gateway does not respond.');
    }
  }

  // Says why the live parts of the page are of an earlier time; without a reason they are current.
  function showStale(why) {
    document.body.classList.toggle('stale', Boolean(why));
    let notice = document.getElementById('stale');
    if (!why) return notice?.remove();
    if (!notice) {
      notice = document.createElement('p');
      notice.id = 'stale';
      notice.className = 'notice warn';
      notice.setAttribute('role', 'status');
      document.getElementById('main').prepend(notice);
    }
    const words = `${why} This page shows the state of ${new Date(current).toISOString().slice(11, 19)} UTC.`;
    if (notice.textContent !== words) notice.textContent = words;
  }

  // The session has ended, or the content is gone: the page says so after a reload. What somebody has typed is not lost.
  function leave(isSessionOver) {
    const fields = [...document.querySelectorAll('main :is(input, textarea)')];
    if (document.querySelector('main [data-live]') && fields.every((field) => field.value === field.defaultValue)) return location.reload();
    showStale(isSessionOver ? 'Your session has ended.' : 'What this page shows does not exist any more.');
    hasLeft = true;
    clearInterval(clock);
  }

  // Replaces the content of an element, and keeps the focus where it was.
  function replaceContent(old, fresh) {
    if (!old || !fresh || old.innerHTML === fresh.innerHTML) return;
    const focused = old.contains(document.activeElement) ? childPath(old, document.activeElement) : null;
    const scrolled = [...old.querySelectorAll('.scroll')].map((e) => e.scrollLeft);
    old.replaceChildren(...document.adoptNode(fresh).childNodes);
    [...old.querySelectorAll('.scroll')].forEach((e, at) => { e.scrollLeft = scrolled[at] ?? 0; });
    if (focused) focused.reduce((e, at) => e?.children[at], old)?.focus({ preventScroll: true });
    // What the rest of the page shows is of an earlier version.
    const notice = document.getElementById('outdated');
    if (notice && old.dataset.version !== fresh.dataset.version) notice.hidden = false;
  }

  function childPath(root, element) {
    const steps = [];
    for (let e = element; e !== root; e = e.parentElement) steps.unshift([...e.parentElement.children].indexOf(e));
    return steps;
  }

  function refreshSoon() {
    if (!timer && !hasLeft) timer = setTimeout(refresh, Math.max(0, last + MIN_INTERVAL - Date.now()));
  }

  const types = new Set(elements.flatMap((id) => document.getElementById(id).dataset.live.split(',')));
  let events = null;
  // A stream stays closed after a refusal, and on a page that the browser has kept, until the next refresh.
  function listen() {
    if (hasLeft || !types.size || !document.querySelector('main [data-live]') || (events && events.readyState !== EventSource.CLOSED)) return;
    events = new EventSource(`${prefix}/api/v1/events?types=${[...types].join(',')}`);
    for (const type of [...types, 'penstock.events.lost']) events.addEventListener(type, refreshSoon);
  }
  listen();
  addEventListener('pagehide', () => events?.close());
  addEventListener('pageshow', (event) => { if (event.persisted) refreshSoon(); });
  const clock = setInterval(() => { if (Date.now() - last >= MAX_INTERVAL) refreshSoon(); }, MAX_INTERVAL / 3);
  document.addEventListener('visibilitychange', refreshSoon);
}

const elements = [...document.querySelectorAll('[data-live]')].map((element) => element.id);
if (elements.length) refreshOnEvents(elements);

// Asks the user before unsaved changes in a form with `data-unsaved` are lost. A form that was refused has them already.
const kept = document.querySelector('form[data-unsaved]');
let hasUnsaved = Boolean(kept?.dataset.unsaved);
kept?.addEventListener('input', () => { hasUnsaved = true; });
addEventListener('beforeunload', (event) => { if (hasUnsaved) event.preventDefault(); });

// A form with typed text is sent only if the gateway responds and the session lasts: otherwise the browser would leave the
// page, and the text would be lost.
const MAX_WAIT = 10000;
let admitted = null;

async function findObstacle() {
  try {
    const answer = await fetch(`${prefix}/admin/changes/to-approve`, { headers: { Accept: 'text/html' }, signal: AbortSignal.timeout(MAX_WAIT) });
    if (answer.redirected) return ['Your session has ended, and nothing was sent. ', linkToSignIn(), ', then send the form again.'];
    return answer.ok ? null : [`The gateway answered with status ${answer.status}, and nothing was sent. Try again in a moment.`];
  } catch {
    return ['The gateway does not respond, and nothing was sent. Try again when it does.'];
  }
}

function linkToSignIn() {
  const link = document.createElement('a');
  link.href = `${prefix}/login`;
  link.target = '_blank';
  link.textContent = 'Sign in in another tab';
  return link;
}

addEventListener('submit', async (event) => {
  const { target: form, submitter } = event;
  const isTyped = form.method === 'post' && form.querySelector('textarea, input:not([type=hidden])');
  if (event.defaultPrevented || !isTyped) return;
  if (form === admitted) {
    hasUnsaved = false;
    return;
  }
  event.preventDefault();
  if (form.ariaBusy === 'true') return;
  form.ariaBusy = 'true';
  document.getElementById('unsent')?.remove();
  const obstacle = await findObstacle();
  form.ariaBusy = null;
  if (obstacle) {
    const notice = document.createElement('p');
    notice.id = 'unsent';
    notice.className = 'notice fault';
    notice.setAttribute('role', 'alert');
    notice.tabIndex = -1;
    notice.append(...obstacle);
    form.append(notice);
    notice.focus();
    return;
  }
  admitted = form;
  form.requestSubmit(submitter);
  admitted = null;
});

// Buttons that copy the text of the element in their `data-copy`. Without script the text can be selected.
for (const button of document.querySelectorAll('[data-copy]')) {
  const source = document.getElementById(button.dataset.copy);
  button.hidden = false;
  button.addEventListener('click', async () => {
    try {
      await navigator.clipboard.writeText(source.textContent.trim());
      button.textContent = 'Copied';
    } catch {
      getSelection().selectAllChildren(source);
      button.textContent = 'Selected: copy it now';
    }
  });
}

// The key `/` leads to the search field, except while somebody types. The page of the search turns it off and on again.
const SHORTCUT = 'penstock-search-key';
const isOff = () => localStorage.getItem(SHORTCUT) === 'off';
addEventListener('keydown', (event) => {
  const isTyping = event.target.closest?.('input, textarea, select, [contenteditable], dialog[open]');
  if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey || isTyping || isOff()) return;
  const field = document.getElementById('search');
  if (!field) return;
  event.preventDefault();
  const menu = document.getElementById('navigation');
  if (menu.matches(':popover-open')) menu.hidePopover();
  field.focus();
  field.select();
});
const shortcut = document.querySelector('[data-shortcut]');
if (shortcut) {
  const button = shortcut.querySelector('button');
  const label = () => { button.textContent = isOff() ? 'Turn the key on' : 'Turn the key off'; };
  button.addEventListener('click', () => {
    localStorage.setItem(SHORTCUT, isOff() ? 'on' : 'off');
    label();
  });
  label();
  shortcut.hidden = false;
}

// After a form with errors, the summary of the errors gets the focus, so that screen readers read it first.
document.getElementById('faults')?.focus();

// A table has a tab stop only if it scrolls.
function setTabStops() {
  for (const box of document.querySelectorAll('.scroll')) {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    else box.removeAttribute('tabindex');
  }
}
setTabStops();
addEventListener('resize', setTabStops);
