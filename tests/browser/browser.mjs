// Chromium for a test. The test fails if a page fetches anything from another server, or reports an error.
import assert from 'node:assert/strict';
import { chromium } from 'playwright-core';

export const gateway = process.env.GATEWAY;

// With PENSTOCK_TEST_LATE=700 every response arrives 700 ms later, and so the style sheet and the scripts of a page
// 700 ms after it, as on a slow machine. A test that does not wait for them then always fails, instead of sometimes.
const late = Number(process.env.PENSTOCK_TEST_LATE ?? 0);

// The timeout of a step in milliseconds. It is long, because CI runs many tests at once on a few slow cores.
export const stepTimeout = 60_000;

// Runs `test` with a page of a new browser, whose context has these options.
export async function browse(options, test) {
  const root = process.getuid?.() === 0;
  const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: root ? ['--no-sandbox'] : [] });
  try {
    // In another time zone, Explore reloads its first page.
    const context = await browser.newContext({ timezoneId: 'UTC', ...options });
    context.setDefaultTimeout(stepTimeout);
    const faults = [];
    // The provider's pages load fonts from other servers. Blocking them saves the time.
    await context.route((url) => url.hostname !== '127.0.0.1', (route) => route.abort());
    if (late) await context.route(`${gateway}/**`, (route) => setTimeout(() => route.continue().catch(() => {}), late));
    context.on('page', (page) => {
      page.on('console', (message) => {
        // Statuses of responses are no errors here, nor is a network that a test takes away: tests assert them where they matter.
        const isAsserted = ['the server responded with a status', 'net::ERR_INTERNET_DISCONNECTED'].some((words) => message.text().includes(words));
        if (message.type() === 'error' && page.url().startsWith(gateway) && !isAsserted) faults.push(message.text());
      });
      page.on('pageerror', (error) => faults.push(String(error)));
      page.on('request', (request) => {
        const ours = page.url().startsWith(gateway) && !request.isNavigationRequest();
        if (ours && !request.url().startsWith('data:') && !request.url().startsWith(gateway)) faults.push(`fetched ${request.url()}`);
      });
    });
    const page = await context.newPage();
    makeStepsWait(Object.getPrototypeOf(page.locator('html')));
    await test(page, context);
    assert.deepEqual(faults, []);
  } finally {
    await browser.close();
  }
}

// Makes these steps of Playwright wait until the page that they lead to is loaded. They return when it begins to load:
// then parts of it are missing or have no style, and its script may move the focus while a field is filled. With
// script, a form is sent only some time after the click, so a test has to wait for something that the page with the
// form does not have.
let doStepsWait = false;
function makeStepsWait(prototype) {
  if (doStepsWait) return;
  doStepsWait = true;
  for (const step of ['click', 'press', 'waitFor']) {
    const original = prototype[step];
    prototype[step] = async function waiting(...options) {
      await original.apply(this, options);
      await styled(this.page());
    };
  }
}

// Waits until `isTrue` returns true. Fails with what `what` returns.
export async function until(isTrue, what = () => String(isTrue)) {
  for (const end = Date.now() + stepTimeout; !(await isTrue()); await new Promise((go) => setTimeout(go, 50))) {
    assert.ok(Date.now() < end, what());
  }
}

// Waits until the locator finds this many elements in a complete page.
export async function counted(locator, many) {
  let found;
  const isFound = async () => (found = await locator.count().catch(() => -1)) === many;
  await until(async () => {
    if (!(await isFound())) return false;
    await styled(locator.page());
    return isFound();
  }, () => `${locator} found ${found} elements instead of ${many}`);
}

// Waits until the page is complete, has its style, has run its scripts, and has loaded its parts. Its elements can be
// found before that.
export async function styled(page) {
  await page.waitForLoadState('load');
  const busy = page.locator('[aria-busy="true"]');
  await until(async () => (await busy.count().catch(() => 1)) === 0);
}

// Changes the size of the screen, and waits until the script of the page knows.
export async function resize(page, width, height) {
  await page.setViewportSize({ width, height });
  await page.evaluate(() => new Promise((go) => {
    // Without script there are no frames to wait for.
    if (matchMedia('(scripting: none)').matches) go();
    else requestAnimationFrame(() => requestAnimationFrame(go));
  }));
}

// Runs `check` while a live page is not updated, because it is hidden.
export async function withoutUpdates(page, check) {
  await page.evaluate(() => Object.defineProperty(document, 'hidden', { value: true, configurable: true }));
  try {
    return await check();
  } finally {
    await page.evaluate(() => {
      delete document.hidden;
      document.dispatchEvent(new Event('visibilitychange'));
    });
  }
}

// Asserts what must hold for every page of the gateway.
export async function wellMade(page) {
  await styled(page);
  assert.equal(await page.locator('html').getAttribute('lang'), 'en');
  assert.ok((await page.title()).endsWith('– Penstock'));
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth).catch(() => 0);
  assert.equal(wide, 0, 'nothing is wider than the screen');
  // Neither cut nor over the label before it.
  const unreadable = await page.evaluate(() => [...document.querySelectorAll('.plot .scale')].flatMap((scale) => {
    const labels = [...scale.children].filter((label) => label.textContent && label.checkVisibility());
    const isCut = (label) => getComputedStyle(label).overflow !== 'visible' && label.scrollWidth > label.clientWidth;
    const isOver = (label, before) => before && label.getBoundingClientRect().left < before.getBoundingClientRect().right;
    return labels.filter((label, at) => isCut(label) || isOver(label, labels[at - 1])).map((label) => label.textContent);
  })).catch(() => []);
  assert.deepEqual(unreadable, [], 'all labels of an axis can be read');
}

// Asserts that each text has enough contrast with its background (WCAG 2.2, 1.4.3).
export async function readable(page) {
  await styled(page);
  const worst = await page.evaluate(() => {
    const parse = (text) => text.match(/[\d.]+/g).map(Number);
    const light = ([r, g, b]) => [r, g, b].map((c) => c / 255)
      .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
      .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
    const behind = (element) => {
      for (let e = element; e; e = e.parentElement) {
        const color = parse(getComputedStyle(e).backgroundColor);
        if (color.length < 4 || color[3] > 0) return color;
      }
      return [255, 255, 255];
    };
    const texts = [...document.querySelectorAll('main *')].filter((e) => [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()));
    return texts.map((e) => {
      const [a, b] = [light(parse(getComputedStyle(e).color)), light(behind(e))].sort((x, y) => y - x);
      return { text: e.textContent.trim(), contrast: (a + 0.05) / (b + 0.05) };
    }).sort((x, y) => x.contrast - y.contrast)[0];
  });
  assert.ok(worst.contrast >= 4.5, JSON.stringify(worst));
}
