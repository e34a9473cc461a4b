// Chromium for a test. The test fails if a page fetches anything from another server, or reports an error.
import assert from 'node:assert/strict';
import { chromium } from 'playwright-core';

export const gateway = process.env.GATEWAY;

// With PENSTOCK_TEST_LATE=700 the style sheet and the scripts of a page arrive 700 ms after it, as on a slow machine.
// A test that does not wait for them then always fails, instead of sometimes.
const late = Number(process.env.PENSTOCK_TEST_LATE ?? 0);

// Runs `test` with a page of a new browser, whose context has these options.
export async function browse(options, test) {
  const root = process.getuid?.() === 0;
  const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: root ? ['--no-sandbox'] : [] });
  try {
    const context = await browser.newContext(options);
    const faults = [];
    // The provider's pages load fonts from other servers. Blocking them saves the time.
    await context.route((url) => url.hostname !== '127.0.0.1', (route) => route.abort());
    if (late) await context.route(`${gateway}/**/*.{css,js}`, (route) => setTimeout(() => route.continue().catch(() => {}), late));
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
    page.setDefaultTimeout(60_000);
    await test(page, context);
    assert.deepEqual(faults, []);
  } finally {
    await browser.close();
  }
}

// Waits until the locator finds this many elements. A click returns before the next page is loaded and its script
// has run.
export async function counted(locator, many) {
  const end = Date.now() + 60_000;
  let found;
  while ((found = await locator.count().catch(() => -1)) !== many && Date.now() < end) await new Promise((go) => setTimeout(go, 50));
  assert.equal(found, many, String(locator));
}

// Waits until the page has its style. Its elements can be found before that.
export const styled = (page) => page.waitForLoadState('load');

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
