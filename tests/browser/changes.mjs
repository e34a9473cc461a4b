// Changes under review: one account sends a change, its owner sees it, and another account decides, with script and
// without.
import assert from 'node:assert/strict';
import { accessible, api, furnish, people, pump, secret, signIn } from './admin.mjs';
import { browse, counted, gateway } from './browser.mjs';

await furnish();
const admin = await api(people.Admin);
const grace = { email: 'grace@plant.example', givenName: 'Grace', familyName: 'Gray', password: secret };
const stranger = { email: 'ned@plant.example', password: secret };
for (const person of [grace, stranger]) await admin.ask('POST', '/api/v1/users', { ...person, roles: ['Contributor'] });
const carla = await api(people.Contributor);
const uwe = await api(people.User);
const approver = await api(grace);

const listed = async () => (await admin.ask('GET', '/api/v1/business-objects/Pump/objects')).items;
const { id: pumpId } = await admin.ask('GET', '/api/v1/business-objects/Pump');
const object = (await listed()).find((one) => one.name === 'P-1').uri;
const send = async (data) => (await carla.ask('POST', '/api/v1/business-objects/Pump?mode=REPLACE&changeOwners=user:uwe@plant.example', { data })).id;
const notice = (page, text) => page.locator('.notice', { hasText: text }).waitFor();
const buttons = (page) => page.locator('.decision button').allTextContents();

// An Admin creates the group, and requires the review.
await browse({}, async (page) => {
  await signIn(page, people.Admin, '/admin/groups');
  await page.getByRole('link', { name: 'New group' }).click();
  await page.getByLabel('Name').fill('shift leaders');
  await page.getByLabel('Members').fill('nobody@plant.example');
  await page.getByRole('button', { name: 'Create group' }).click();
  await page.locator('#members-fault', { hasText: 'nobody@plant.example' }).waitFor();
  await accessible(page, 'a group with an error');
  await page.getByLabel('Members').fill('carla@plant.example');
  await page.getByRole('button', { name: 'Create group' }).click();
  await notice(page, 'The group shift leaders was created.');
  await page.getByRole('link', { name: 'shift leaders' }).click();
  await page.getByLabel('Members').fill('carla@plant.example\ngrace@plant.example\n');
  await page.getByLabel('Claim values').fill('leaders');
  await page.getByRole('button', { name: 'Save' }).click();
  await notice(page, 'The group shift leaders was saved.');
  assert.match(await page.getByRole('row', { name: /shift leaders/ }).textContent(), /carla@plant\.example.*grace@plant\.example.*leaders/);

  await page.goto(`${gateway}/admin/business-objects/${pumpId}/edit`);
  await page.getByLabel('When an ingestion becomes a change').selectOption('required');
  await page.getByLabel('Approvers').fill('shift leaders');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.locator('#approvers-fault', { hasText: 'group:' }).waitFor();
  await page.getByLabel('Approvers').fill('group:shift leaders');
  await page.getByRole('button', { name: 'Save' }).click();
  await notice(page, 'Pump was saved.');
  await page.getByText('required, approved by group shift leaders').waitFor();
});

for (const javaScriptEnabled of [true, false]) {
  const flow = javaScriptEnabled ? 13.5 : 23.5;
  const name = `P-${flow}`;
  const before = (await listed()).find((one) => one.uri === object).flow;
  const id = await send([{ uri: object, name: 'P-1', flow }, { name }]);
  const path = `/admin/changes/${id}`;

  // The change owner sees it, and what it does, and does not decide.
  await browse({ javaScriptEnabled }, async (page) => {
    await signIn(page, people.User, '/admin/changes?role=owner&state=submitted');
    await page.getByRole('link', { name: 'Pump', exact: true }).first().click();
    await page.getByRole('heading', { name: 'Change of Pump' }).waitFor();
    const row = page.getByRole('row', { name: /^flow/ }).first();
    assert.equal(await row.locator('del').textContent(), String(before));
    assert.equal(await row.locator('ins').textContent(), String(flow));
    await page.getByText('It still applies.').waitFor();
    assert.deepEqual(await buttons(page), ['Withdraw']);
    assert.equal(await page.locator('#to-approve').count(), 0);
    await page.goto(`${gateway}/admin/object?uri=${encodeURIComponent(object)}`);
    await page.getByRole('link', { name: 'Change of Pump' }).click();
    await page.waitForURL((url) => url.pathname === path);
  });

  // For others there is no such change, also on the page of its object.
  await browse({ javaScriptEnabled }, async (page) => {
    await signIn(page, stranger);
    assert.equal((await page.goto(`${gateway}${path}`)).status(), 404);
    await page.goto(`${gateway}/admin/object?uri=${encodeURIComponent(object)}`);
    await page.getByRole('heading', { name: 'P-1' }).waitFor();
    assert.equal(await page.getByText('Pending changes').count(), 0);
    await page.goto(`${gateway}/admin/changes`);
    await page.getByText('There are no changes.').waitFor();
  });

  // The author is in the group of approvers, and still cannot approve it.
  await browse({ javaScriptEnabled }, async (page) => {
    await signIn(page, people.Contributor, path);
    assert.deepEqual(await buttons(page), ['Reject', 'Withdraw']);
    assert.equal(await page.locator('#to-approve').textContent(), '');
    const csrf = await page.locator('.decision input[name=_csrf]').inputValue();
    const forged = await page.request.post(`${gateway}${path}/approve`, { form: { _csrf: csrf, version: '1' } });
    assert.equal(forged.status(), 403);
  });

  await browse({ javaScriptEnabled }, async (page) => {
    await signIn(page, grace, '/admin');
    const count = page.locator('#to-approve');
    assert.match(await count.textContent(), /^1 to approve$/);
    await page.getByRole('link', { name: /^Changes/ }).click();
    await page.getByRole('link', { name: 'To approve', exact: true }).click();
    await page.getByRole('link', { name: 'Pump', exact: true }).click();
    await page.getByText('Carla Curie').first().waitFor();
    assert.deepEqual(await buttons(page), ['Approve and publish', 'Reject']);
    if (javaScriptEnabled) await accessible(page, 'a change to approve');

    // Meanwhile the change owner rebases it. What was seen is not what would be published.
    await admin.ask('PUT', `/api/v1/namespaces/Made${flow * 10}`, {});
    await uwe.ask('POST', `/api/v1/changes/${id}/rebase`, { comment: 'look again' });
    if (javaScriptEnabled) {
      await page.locator('#outdated').waitFor();
      await page.getByText('look again').waitFor();
    }
    await page.getByLabel('Comment').fill('checked at the plant');
    const stale = page.waitForResponse((answer) => answer.url().endsWith('/approve'));
    await page.getByRole('button', { name: 'Approve and publish' }).click();
    assert.equal((await stale).status(), 412);
    await page.getByRole('alert').getByText('It has changed since you opened this page.').waitFor();
    if (javaScriptEnabled) await accessible(page, 'a stale approval');
    assert.equal(await page.getByLabel('Comment').inputValue(), 'checked at the plant');
    assert.ok(!(await listed()).some((one) => one.name === name));

    await page.getByRole('button', { name: 'Approve and publish' }).click();
    await notice(page, 'The change was approved and published.');
    await page.getByText('approved it, which published it').waitFor();
    await page.getByText('checked at the plant').waitFor();
    await counted(page.locator('.decision'), 0);
    assert.equal(await count.textContent(), '');
    await page.getByRole('link', { name, exact: true }).click();
    await page.getByRole('heading', { name }).waitFor();
    const published = await listed();
    assert.ok(published.some((one) => one.name === name));
    assert.equal(published.find((one) => one.uri === object).flow, flow);

    // A second change is rejected, with the reason.
    const rejected = await send([{ name: `${name} wrong` }]);
    await page.goto(`${gateway}/admin/changes/${rejected}`);
    await page.getByLabel('Comment').fill('There is no such pump.');
    await page.getByRole('button', { name: 'Reject' }).click();
    await notice(page, 'The change was rejected.');
    assert.ok(!(await listed()).some((one) => one.name === `${name} wrong`));
    const { history } = await carla.ask('GET', `/api/v1/changes/${rejected}`);
    assert.equal(history.at(-1).comment, 'There is no such pump.');

    // Another change of the same object is published first: the third one is rebased before it is approved.
    const third = await send([{ uri: object, name: 'P-1', flow: flow + 1 }]);
    await page.goto(`${gateway}/admin/changes/${third}`);
    const faster = await send([{ uri: object, name: 'P-1', flow: flow + 2 }]);
    await approver.ask('POST', `/api/v1/changes/${faster}/approve`, undefined, { 'If-Match': '"1"' });
    const refused = page.waitForResponse((answer) => answer.url().endsWith('/approve'));
    await page.getByRole('button', { name: 'Approve and publish' }).click();
    assert.equal((await refused).status(), 409);
    await page.getByRole('alert').getByText('rebase it').waitFor();
    await page.getByText('It would do something else now.').waitFor();
    assert.deepEqual(await buttons(page), ['Reject', 'Rebase: compute the difference again']);
    await page.getByRole('button', { name: 'Rebase' }).click();
    await notice(page, 'computed again');
    assert.equal(await page.getByRole('row', { name: /^flow/ }).locator('del').textContent(), String(flow + 2));
    await page.getByRole('button', { name: 'Approve and publish' }).click();
    await notice(page, 'The change was approved and published.');
  });
}

// The list, and the count in the menu of every page, are live.
await browse({}, async (page, context) => {
  await signIn(page, grace, '/admin/changes?role=approver&state=submitted');
  await page.getByText('No change matches.').waitFor();
  const other = await context.newPage();
  await other.goto(`${gateway}/admin/profile`);
  const id = await send([{ name: 'P-live' }]);
  await page.getByRole('link', { name: 'Pump', exact: true }).waitFor();
  await page.locator('#to-approve', { hasText: '1 to approve' }).waitFor();
  await other.locator('#to-approve', { hasText: '1 to approve' }).waitFor();
  await carla.ask('POST', `/api/v1/changes/${id}/withdraw`);
  await page.getByText('No change matches.').waitFor();
});

// After the session has ended, a live page shows the sign-in, but what somebody has typed is not lost.
await browse({}, async (page, context) => {
  await signIn(page, grace);
  const id = await send([{ name: 'P-unsaved' }]);
  const cookies = await context.cookies();
  const typed = 'written for a long time';
  for (const [path, field] of [[`/admin/changes/${id}`, 'Comment'], ['/admin/query', 'Query'], ['/admin/changes', null]]) {
    await context.addCookies(cookies);
    await page.goto(`${gateway}${path}`);
    await page.locator('#to-approve', { hasText: '1 to approve' }).waitFor();
    if (field) await page.getByRole('textbox', { name: field, exact: true }).fill(typed);
    await page.locator('h1').click();
    await context.clearCookies();
    await page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')));
    if (field) {
      await page.locator('body.stale').waitFor();
      assert.equal(await page.getByRole('textbox', { name: field, exact: true }).inputValue(), typed);
    } else {
      await page.waitForURL((url) => url.pathname === '/login');
    }
  }
  await carla.ask('POST', `/api/v1/changes/${id}/withdraw`);
});

// A draft is submitted by its author in the page.
const draft = (await carla.ask('POST', '/api/v1/business-objects/Pump?draft=true', { data: [{ name: 'P-draft' }] })).id;
await browse({}, async (page) => {
  await signIn(page, people.Contributor, `/admin/changes/${draft}`);
  assert.deepEqual(await buttons(page), ['Submit for approval', 'Withdraw']);
  await page.getByRole('button', { name: 'Submit for approval' }).click();
  await notice(page, 'The change was submitted.');
  await page.getByRole('button', { name: 'Withdraw' }).click();
  await notice(page, 'The change was withdrawn.');
});

// A group is deleted after a confirmation, which names what it approves.
await browse({}, async (page) => {
  await signIn(page, people.Admin, '/admin/groups/shift%20leaders');
  await page.getByRole('link', { name: 'Delete' }).click();
  await page.getByText(pump.name, { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Delete group' }).click();
  await notice(page, 'The group shift leaders was deleted.');
});
for (const client of [admin, carla, uwe, approver]) await client.close();
