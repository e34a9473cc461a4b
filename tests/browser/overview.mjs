// The overview: how many bytes a first visit transfers, live updates in two browsers, and the page without script.
import assert from 'node:assert/strict';
import { accessible, api, furnish, people, signIn } from './admin.mjs';
import { browse, counted, gateway, stepTimeout } from './browser.mjs';

await furnish();

// All bytes of a first visit, from the start address to the overview.
await browse({}, async (page, context) => {
  const network = await context.newCDPSession(page);
  await network.send('Network.enable');
  let bytes = 0;
  network.on('Network.loadingFinished', (finished) => { bytes += finished.encodedDataLength; });
  network.on('Network.dataReceived', () => {});
  await signIn(page, people.User, '/');
  await page.getByRole('heading', { name: 'Overview' }).waitFor();
  await page.waitForLoadState('load');
  console.log(`a first visit transfers ${bytes} bytes`);
  assert.ok(bytes > 5_000 && bytes < 200_000, `a first visit transfers ${bytes} bytes`);
});

// A change by one user appears for the other without a reload.
await browse({}, async (page, context) => {
  await signIn(page, people.Admin);
  await page.getByText('The initial password is still in use.').waitFor();
  const other = await context.browser().newContext();
  other.setDefaultTimeout(stepTimeout);
  const theirs = await other.newPage();
  await signIn(theirs, people.Contributor);
  const objects = (of, count) => of.locator('figure').first().locator('figcaption', { hasText: `changed: ${count} in total` });
  for (const watched of [page, theirs]) await objects(watched, 2).waitFor();
  const { ask, close } = await api(people.Contributor);
  await ask('POST', '/api/v1/business-objects/Pump', { data: [{ name: 'P-3' }] });
  await close();
  for (const watched of [page, theirs]) await objects(watched, 3).waitFor();
  // An update keeps the focus.
  const link = page.getByRole('link', { name: 'Change it' });
  await link.focus();
  const contributor = await api(people.Contributor);
  await contributor.ask('POST', '/api/v1/business-objects/Pump', { data: [{ name: 'P-4' }] });
  await contributor.close();
  await page.getByText('changed: 4').first().waitFor();
  // The same data again is shown apart.
  const { ask: send, close: end } = await api(people.Contributor);
  const { items } = await send('GET', '/api/v1/business-objects/Pump/objects');
  await send('POST', '/api/v1/business-objects/Pump', { data: items });
  await end();
  await page.getByText('sent again unchanged: 4').first().waitFor();
  await counted(page.locator(':focus', { hasText: 'Change it' }), 1);
  // An update that arrives while somebody presses a link does not take the link away.
  let answer;
  const held = new Promise((go) => { answer = go; });
  await page.route(`${gateway}/admin`, (route) => held.then(() => route.continue()), { times: 1 });
  const asked = page.waitForRequest(`${gateway}/admin`);
  await page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')));
  const update = (await asked).response();
  await page.getByRole('link', { name: 'Last 24 hours' }).hover();
  await page.mouse.down();
  answer();
  await (await update).finished();
  await page.evaluate(() => new Promise(requestAnimationFrame));
  await page.mouse.up();
  await page.getByRole('img', { name: /^Objects per hour: changed: 4 in total, sent again unchanged: 4 in total/ }).waitFor();
  await page.getByRole('img', { name: /^Memory: in use: \d/ }).waitFor();
  await other.close();
});

// The page also works without script.
await browse({ javaScriptEnabled: false }, async (page) => {
  await signIn(page, people.User);
  await page.getByRole('heading', { name: 'Export queue' }).waitFor();
  await page.getByRole('rowheader', { name: 'archive' }).waitFor();
  await page.getByRole('img', { name: /^Deliveries per minute: delivered: 1 in total, failed attempts: 0 in total/ }).waitFor();
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByRole('heading', { name: 'You are signed out' }).waitFor();
  await page.goto(`${gateway}/admin`);
  assert.equal(new URL(page.url()).pathname, '/login');
});

// Correct a dead letter and send it again: from the overview to the object, its error, and the corrected text.
for (const javaScriptEnabled of [true, false]) {
  const { ask, close } = await api(people.Contributor);
  await ask('POST', '/api/v1/business-objects/Pump?onError=skip', { data: [{ name: `D-${javaScriptEnabled}`, flow: 'fast' }] });
  await close();
  await browse({ javaScriptEnabled }, async (page) => {
    await signIn(page, people.Contributor);
    await page.getByRole('listitem').filter({ hasText: '1 dead letter.' }).getByRole('link', { name: 'Dead letters' }).click();
    await page.getByRole('link', { name: 'Object 0' }).click();
    await page.getByRole('listitem').filter({ hasText: '/flow' }).first().waitFor();
    if (javaScriptEnabled) await accessible(page, 'a dead letter');
    const text = page.getByLabel('JSON');
    await text.fill((await text.inputValue()).replace('"fast"', '"slow"'));
    await page.getByRole('button', { name: 'Retry' }).click();
    await page.getByRole('alert').getByText('flow').first().waitFor();
    await text.fill((await text.inputValue()).replace('"slow"', '7.5'));
    await page.getByRole('button', { name: 'Retry' }).click();
    await page.getByRole('status').getByText('The object was ingested.').waitFor();
    await page.getByText('There are no dead letters.').waitFor();
    // The problem is gone from the overview, and the corrected object is stored.
    await page.goto(`${gateway}/admin`);
    await counted(page.getByRole('listitem').filter({ hasText: 'dead letter.' }), 0);
  });
  const { ask: list, close: end } = await api(people.User);
  const { items } = await list('GET', '/api/v1/business-objects/Pump/objects');
  assert.equal(items.find((one) => one.name === `D-${javaScriptEnabled}`)?.flow, 7.5);
  await end();
}
