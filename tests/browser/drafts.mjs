// What somebody has typed is not lost, and a page says when it is of an earlier time.
import assert from 'node:assert/strict';
import { api, furnish, people, signIn } from './admin.mjs';
import { browse, counted, gateway } from './browser.mjs';

await furnish();
const { ask, close } = await api(people.Admin);
const [{ id }] = (await ask('GET', '/api/v1/business-objects')).items;
await close();

// A form is not sent without the gateway or the session, so the page and its text stay.
await browse({}, async (page, context) => {
  await signIn(page, people.Admin, '/admin/new-namespace');
  await page.getByLabel('Name').fill('Typed');
  const button = page.getByRole('button', { name: 'Create namespace' });
  await context.setOffline(true);
  await button.click();
  await page.getByRole('alert').getByText('The gateway does not respond, and nothing was sent.').waitFor();
  await counted(page.locator('#unsent:focus'), 1);
  await context.setOffline(false);
  await context.clearCookies();
  await button.click();
  const opened = context.waitForEvent('page');
  await page.getByRole('alert').getByRole('link', { name: 'Sign in in another tab' }).click();
  const other = await opened;
  await other.getByLabel('Email').fill(people.Admin.email);
  await other.getByLabel('Password').fill(people.Admin.password);
  await other.getByRole('button', { name: 'Sign in' }).click();
  await other.getByRole('heading', { name: 'Overview' }).waitFor();
  assert.equal(await page.getByLabel('Name').inputValue(), 'Typed');
  await button.click();
  await page.getByRole('status').getByText('The namespace Typed was created.').waitFor();
});

// Without script, the page that answers the form sends it again when it is reloaded.
await browse({ javaScriptEnabled: false }, async (page, context) => {
  await signIn(page, people.Admin, '/admin/new-namespace');
  await page.getByLabel('Name').fill('Sent again');
  await context.clearCookies();
  await page.getByRole('button', { name: 'Create namespace' }).click();
  await page.getByRole('heading', { name: 'Your session has ended' }).waitFor();
  const other = await context.newPage();
  await signIn(other, people.Admin);
  await page.reload();
  await page.getByRole('status').getByText('The namespace Sent again was created.').waitFor();
});

// A live page says that the gateway does not respond, and since when.
await browse({}, async (page, context) => {
  await signIn(page, people.User, '/admin/exports');
  await page.getByRole('rowheader', { name: 'Pump' }).waitFor();
  const refresh = () => page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')));
  await context.setOffline(true);
  await refresh();
  await page.getByRole('status').getByText(/^The gateway does not respond\. This page shows the state of \d\d:\d\d:\d\d UTC\.$/).waitFor();
  await context.setOffline(false);
  await refresh();
  await counted(page.locator('#stale'), 0);
  // A stream of events that was refused begins again.
  const events = (status) => page.waitForResponse((answer) => answer.url().includes('/api/v1/events') && answer.status() === status);
  // The page before asks for no stream any more.
  await page.goto('about:blank');
  await page.route(/\/api\/v1\/events/, (route) => route.fulfill({ status: 503, body: '' }), { times: 1 });
  const refused = events(503);
  await page.goto(`${gateway}/admin/exports`);
  await refused;
  const begun = events(200);
  await refresh();
  await begun;
});

await browse({}, async (page) => {
  await signIn(page, people.Admin, `/admin/business-objects/${id}/edit`);
  await page.getByText('The mapping is valid').waitFor();
  // The verdict about an earlier text does not stay when a check fails, and the check is repeated.
  const sample = page.getByLabel('Sample data');
  await page.route('**/business-objects/check', (route) => route.fulfill({ status: 503, body: '' }));
  await sample.fill('{"name": "P-9"}');
  await page.getByRole('status').getByText('The gateway answered with status 503. The check continues when it can.').waitFor();
  await page.unroute('**/business-objects/check');
  await page.getByText('The sample matches').waitFor();
  // A form that was refused is still unsaved.
  await page.getByLabel('Schedule').fill('every day');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.locator('#schedule-fault').waitFor();
  const asked = page.waitForEvent('dialog');
  await page.getByLabel('Schedule').click();
  const left = page.getByRole('link', { name: 'Cancel' }).click();
  const dialog = await asked;
  assert.equal(dialog.type(), 'beforeunload');
  await dialog.dismiss();
  await left;
  assert.equal(await page.getByLabel('Schedule').inputValue(), 'every day');
  await page.getByLabel('Schedule').fill('');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('status').getByText('Pump was saved.').waitFor();
});
