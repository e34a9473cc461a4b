// Saved views and the search field: a person saves a filtered list and finds it in the menu, searches with the keyboard, and
// turns the key off, on a phone and on a wide screen, with script and without.
import assert from 'node:assert/strict';
import { accessible, api, everyLook, furnish, people, reachable, signIn } from './admin.mjs';
import { browse, counted, gateway, resize } from './browser.mjs';

await furnish();
const { ask, close } = await api(people.Admin);
const { id } = (await ask('GET', '/api/v1/business-objects')).items.find((one) => one.name === 'Pump');
const data = [...Array(8).keys()].map((at) => ({ name: `Feed pump ${at}`, flow: at }));
await ask('POST', '/api/v1/business-objects/Pump', { data });
const long = 'Pumps of the north side whose flow is over the limit of the last audit';

for (const javaScriptEnabled of [true, false]) {
  await browse({ javaScriptEnabled, viewport: { width: 1440, height: 900 } }, async (page) => {
    await signIn(page, people.Contributor);
    const menu = page.getByRole('navigation', { name: 'Main' });
    for (const caption of ['Data', 'Exchange', 'Access']) await menu.getByRole('list', { name: caption, exact: true }).waitFor();
    assert.equal(await menu.getByRole('list', { name: 'System', exact: true }).count(), 0);

    // The filters, the order and a name make a view, which the menu of every page has.
    await page.goto(`${gateway}/admin/objects/${id}?field=%2Fname&test=contains&text=feed&sort=-flow`);
    await page.getByText('Save view').click();
    await page.getByLabel('Name', { exact: true }).fill(javaScriptEnabled ? 'Feed pumps' : long);
    if (javaScriptEnabled) await everyLook(page, 'form that saves a view');
    await resize(page, 1440, 900);
    await page.getByLabel('Share it with all').check();
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await page.locator('.notice', { hasText: 'was saved' }).waitFor();
    await page.getByText('name contains feed').waitFor();
    await page.goto(`${gateway}/admin/exports`);
    await menu.getByRole('link', { name: javaScriptEnabled ? 'Feed pumps' : long }).click();
    await page.getByText('8 objects match').waitFor();
    await page.getByRole('link', { name: 'Feed pump 7' }).waitFor();
    if (javaScriptEnabled) {
      await everyLook(page, 'list of a view');
      await reachable(page, 'list of a view');
    }

    // On a phone, the field is above every page, and the view in the menu.
    await resize(page, 360, 800);
    await page.goto(`${gateway}/admin`);
    await page.getByRole('button', { name: 'Menu' }).click();
    await menu.getByRole('link', { name: javaScriptEnabled ? 'Feed pumps' : long }).waitFor();
    if (javaScriptEnabled) await accessible(page, 'menu with views');
    await page.keyboard.press('Escape');
    const field = page.getByRole('searchbox', { name: 'Search', exact: true });
    await field.fill('feed PUMP 3');
    await field.press('Enter');
    await page.getByRole('heading', { level: 1, name: 'Search' }).waitFor();
    await page.getByRole('link', { name: 'Feed pump 3' }).click();
    await page.getByRole('heading', { level: 1, name: 'Feed pump 3' }).waitFor();
    await page.goto(`${gateway}/admin/search?q=feed`);
    await page.getByText('These Business Objects may have more such objects: Pump.').waitFor();
    await page.getByText('Only the newest exports are searched by their key.').waitFor();
    if (!javaScriptEnabled) return;
    await everyLook(page, 'results of a search');
    await reachable(page, 'results of a search');

    // The key leads to the field, but not while somebody types, and not after it was turned off.
    await page.goto(`${gateway}/admin/exports`);
    await page.keyboard.press('/');
    await counted(page.locator('#search:focus'), 1);
    await page.keyboard.type('/x');
    assert.equal(await field.inputValue(), '/x');
    await page.goto(`${gateway}/admin/search`);
    await page.getByRole('button', { name: 'Turn the key off' }).click();
    await page.getByRole('button', { name: 'Turn the key on' }).waitFor();
    await page.goto(`${gateway}/admin/exports`);
    await page.keyboard.press('/');
    assert.equal(await page.locator('#search:focus').count(), 0);
  });
}

// A view whose field is gone says so, and its owner deletes it.
const views = await ask('GET', '/api/v1/views');
assert.equal(views.items.length, 2);
const definition = await ask('GET', '/api/v1/business-objects/Pump');
await ask('PUT', '/api/v1/business-objects/Pump', { ...definition, config: definition.config.replace(/^ {2}flow: .*\n/m, '') });
await browse({}, async (page) => {
  await signIn(page, people.Contributor, '/admin/views');
  await page.getByText('there is no field `flow` to order by').first().waitFor();
  await everyLook(page, 'views that no longer fit');
  await page.getByRole('link', { name: 'Delete Feed pumps' }).click();
  await page.getByRole('button', { name: 'Delete view' }).click();
  await page.locator('.notice', { hasText: 'The view Feed pumps was deleted.' }).waitFor();
});
await close();
