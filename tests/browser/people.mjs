// The forms of users, API keys, the profile and namespaces, with script and without.
import assert from 'node:assert/strict';
import { accessible, furnish, people, secret, signIn } from './admin.mjs';
import { browse, counted, gateway } from './browser.mjs';

await furnish();

for (const javaScriptEnabled of [true, false]) {
  const email = `ada-${javaScriptEnabled}@plant.example`;
  await browse({ javaScriptEnabled }, async (page) => {
    await signIn(page, people.Admin, '/admin/users');
    const notice = (text) => page.locator('.notice', { hasText: text }).waitFor();

    // An error is shown at its field, and the form keeps the input.
    await page.getByRole('link', { name: 'New user' }).click();
    await page.getByLabel('Email').fill(email);
    await page.getByLabel('Given name').fill('Ada');
    await page.getByLabel('Initial password').fill('short');
    await page.getByRole('button', { name: 'Create user' }).click();
    await page.getByRole('alert').waitFor();
    const field = page.getByLabel('Initial password');
    assert.equal(await field.getAttribute('aria-invalid'), 'true');
    const ids = (await field.getAttribute('aria-describedby')).trim().split(/\s+/);
    assert.match(await page.locator(`#${ids[0]}`).textContent(), /password/);
    assert.equal(await page.getByLabel('Given name').inputValue(), 'Ada');
    if (javaScriptEnabled) {
      await accessible(page, 'a form with an error');
      await counted(page.locator('#faults:focus'), 1);
    }
    await page.getByLabel('Initial password').fill(secret);
    await page.getByLabel('Role').selectOption('Contributor');
    await page.getByRole('button', { name: 'Create user' }).click();
    await notice(`The account ${email} was created.`);
    // The notice is shown only once.
    await page.goto(`${gateway}/admin/users`);
    assert.equal(await page.locator('.notice').count(), 0);

    // A second account cannot have the same email.
    await page.getByRole('link', { name: 'New user' }).click();
    await page.getByLabel('Email').fill(email);
    await page.getByLabel('Initial password').fill(secret);
    await page.getByRole('button', { name: 'Create user' }).click();
    await page.locator('#email-fault', { hasText: 'taken' }).waitFor();

    await page.goto(`${gateway}/admin/users`);
    await page.getByRole('link', { name: email }).click();
    await page.getByLabel('Organization').fill('Plant <b>Süd</b>');
    await page.getByLabel('May sign in').uncheck();
    // The form does not overwrite what another user has changed meanwhile.
    const twin = await page.context().newPage();
    await twin.goto(page.url());
    await twin.getByLabel('Family name').fill('Byron');
    await twin.getByRole('button', { name: 'Save' }).click();
    await twin.locator('.notice', { hasText: 'was changed' }).waitFor();
    await twin.close();
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('alert').waitFor();
    await page.goto(page.url());
    await page.getByLabel('Organization').fill('Plant <b>Süd</b>');
    await page.getByLabel('May sign in').uncheck();
    await page.getByRole('button', { name: 'Save' }).click();
    await notice('was changed');
    await page.goto(`${gateway}/admin/users`);
    const row = page.getByRole('row', { name: email });
    assert.match(await row.textContent(), /Disabled.*Ada.*Byron.*Plant <b>Süd<\/b>.*Contributor.*Built in/s);

    // Deleting asks for confirmation, and says what is deleted.
    await row.getByRole('link', { name: email }).click();
    await page.getByRole('link', { name: 'Delete' }).click();
    await page.getByText('0 API keys').waitFor();
    await page.getByRole('button', { name: 'Delete account' }).click();
    await notice('was deleted');
    assert.equal(await page.getByRole('link', { name: email }).count(), 0);

    // The last Admin cannot be deleted.
    await page.getByRole('rowheader', { name: 'admin' }).getByRole('link').click();
    await page.getByRole('link', { name: 'Delete' }).click();
    await page.getByRole('button', { name: 'Delete account' }).click();
    await notice('the last enabled Admin');

    // The audit trail has the events.
    await page.goto(`${gateway}/admin/audit`);
    await page.getByLabel('Event').selectOption('account.deleted');
    await page.getByRole('button', { name: 'Show' }).click();
    await page.getByRole('cell', { name: email }).waitFor();
    await counted(page.getByRole('rowheader', { name: 'account.created' }), 0);
    // Each kind of definition can be chosen.
    for (const kind of ['shapes-graph', 'group', 'view', 'change']) await page.getByLabel('Event').selectOption(kind);

    // A key is shown once, and works until it is revoked.
    await page.goto(`${gateway}/admin/keys`);
    await page.getByRole('link', { name: 'New API key' }).click();
    await page.getByLabel('Name').fill('press 7');
    await page.getByLabel('Last day').fill('2001-01-01');
    await page.getByRole('button', { name: 'Create key' }).click();
    await page.locator('#expiresAt-fault').waitFor();
    await page.getByLabel('Last day').fill('');
    await page.getByRole('group', { name: 'Business Objects' }).getByLabel('Pump', { exact: true }).check();
    await page.getByRole('button', { name: 'Create key' }).click();
    await page.locator('#key').waitFor();
    const key = (await page.locator('#key').textContent()).trim();
    assert.match(key, /^penstock_/);
    await counted(page.getByRole('button', { name: 'Copy key' }), javaScriptEnabled ? 1 : 0);
    const ask = () => fetch(`${gateway}/api/v1/business-objects/Pump`, { headers: { Authorization: `Bearer ${key}` } });
    assert.equal((await ask()).status, 200);
    await page.getByRole('link', { name: 'Back to the list' }).click();
    assert.ok(!(await page.content()).includes(key));
    await page.getByRole('link', { name: 'Revoke press 7' }).click();
    await page.getByRole('button', { name: 'Revoke key' }).click();
    await notice('was revoked');
    assert.equal((await ask()).status, 401);

    // A namespace is created, changed and deleted.
    await page.goto(`${gateway}/admin/namespaces`);
    await page.getByRole('link', { name: 'New namespace' }).click();
    await page.getByLabel('Name').fill('Tank');
    await page.getByRole('button', { name: 'Create namespace' }).click();
    await page.locator('#name-fault', { hasText: 'already' }).waitFor();
    await page.getByLabel('Name').fill('Valve 1');
    await page.getByLabel('URI base').fill('no IRI');
    await page.getByRole('button', { name: 'Create namespace' }).click();
    await page.locator('#uriBase-fault').waitFor();
    await page.getByLabel('URI base').fill('');
    await page.getByRole('button', { name: 'Create namespace' }).click();
    await notice('The namespace Valve 1 was created.');
    await page.getByRole('link', { name: 'Valve 1' }).click();
    await page.getByLabel('Generator').selectOption('counter');
    await page.getByRole('button', { name: 'Save' }).click();
    await notice('was changed');
    await page.getByRole('link', { name: 'Delete' }).click();
    await page.getByRole('button', { name: 'Delete namespace' }).click();
    await notice('was deleted');
    await page.goto(`${gateway}/admin/namespaces/Pump`);
    await page.getByText('the mapping of the Business Object "Pump" names it').waitFor();
    assert.equal(await page.getByRole('button', { name: 'Save' }).count(), 0);

    // The configuration, without its secrets.
    await page.goto(`${gateway}/admin/settings`);
    assert.match(await page.getByRole('row', { name: /^service\.data-dir/ }).textContent(), /data.*command line/s);
    assert.ok(!(await page.content()).includes(process.env.SECRET));
    await page.getByRole('row', { name: /secret-access-key/ }).first().getByText('******').waitFor();
  });
}

// A user changes their own profile and password.
await browse({}, async (page) => {
  await signIn(page, people.User, '/admin/profile');
  await page.getByLabel('Organization').fill('Plant West');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.locator('.notice', { hasText: 'Your profile was changed.' }).waitFor();
  assert.equal(await page.getByLabel('Organization').inputValue(), 'Plant West');

  const change = async (present, next, again) => {
    await page.getByLabel('Current password').fill(present);
    await page.getByLabel('New password', { exact: true }).fill(next);
    await page.getByLabel('Confirm new password').fill(again);
    await page.getByRole('button', { name: 'Change password' }).click();
  };
  await change('not this one at all', 'another long password', 'another long password');
  await page.locator('#currentPassword-fault').waitFor();
  await accessible(page, 'the profile with an error');
  await change(secret, 'another long password', 'another long passwort');
  await page.locator('#again-fault').waitFor();
  await change(secret, 'another long password', 'another long password');
  await page.locator('.notice', { hasText: 'Your password was changed' }).waitFor();
  await page.getByRole('button', { name: 'Menu' }).or(page.getByRole('button', { name: 'Sign out' })).first().waitFor();
  await page.getByRole('button', { name: 'Sign out' }).click();
  await signIn(page, { ...people.User, password: 'another long password' });
  await page.getByRole('heading', { name: 'Overview' }).waitFor();
});
