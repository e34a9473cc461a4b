// From the first start to the first delivered export, with a browser and the first password alone; then what
// else there is to do with a Business Object, its objects, exports and targets. With script and without.
import assert from 'node:assert/strict';
import { accessible, people, secret, signIn } from './admin.mjs';
import { browse, counted, gateway } from './browser.mjs';
import { derive, deliver, notice, send, uri } from './journey.mjs';

const admin = { ...people.Admin };

for (const [name, script] of [['Pump', true], ['Fan', false]]) {
  await browse({ javaScriptEnabled: script, acceptDownloads: true }, async (page, context) => {
    await signIn(page, admin);
    if (admin.password !== secret) {
      await page.getByRole('link', { name: 'Change it' }).click();
      await page.getByLabel('Present password').fill(admin.password);
      await page.getByLabel('New password').fill(secret);
      await page.getByLabel('The same again').fill(secret);
      await page.getByRole('button', { name: 'Change the password' }).click();
      await page.locator('.notice').waitFor();
      admin.password = secret;
    }
    await derive(page, name, { script });
    await send(page, name);
    await deliver(page, name, { script });

    // Its objects, by what they hold.
    await page.goto(`${gateway}/admin/business-objects`);
    const row = page.getByRole('row', { name });
    assert.match(await row.textContent(), /archive.*enabled.*ago.*delivered/s);
    await row.getByRole('link', { name: `Objects of ${name}` }).click();
    await counted(page.locator('tbody tr'), 2);
    await page.getByLabel('Field').selectOption({ label: 'parts › label' });
    await page.getByLabel('Text').fill('shaft');
    await page.getByRole('button', { name: 'Search' }).click();
    await page.getByRole('link', { name: uri(name) }).waitFor();
    await counted(page.locator('tbody tr'), 1);
    await page.getByLabel('Field').selectOption({ label: 'flow' });
    await page.getByLabel('Test').selectOption('after');
    await page.getByLabel('Text').fill('many');
    await page.getByRole('button', { name: 'Search' }).click();
    await page.getByRole('alert').waitFor();
    await page.getByLabel('Text').fill('12');
    await page.getByRole('button', { name: 'Search' }).click();
    await page.getByRole('link', { name: uri(name) }).click();
    const json = await page.locator('section', { hasText: 'As JSON' }).locator('pre').textContent();
    assert.equal(JSON.parse(json).name, 'P-101 <b>');
    assert.match(await page.locator('section', { hasText: 'As Turtle' }).locator('pre').textContent(), /P-101 <b>/);
    await page.getByText(`ADD into ${name}`).first().waitFor();
    if (script) await accessible(page, 'an object');
    // A nested object: what it stands in refers to it.
    await page.locator('pre a').last().click();
    await page.getByRole('link', { name: uri(name) }).waitFor();
    await page.getByText('Its URI was made by the ingestion').waitFor();

    // A target that takes files, and one that nothing leads to.
    await page.goto(`${gateway}/admin/targets`);
    await page.getByRole('button', { name: 'Test the connection to archive' }).click();
    await notice(page, 'archive answered');
    await page.getByRole('button', { name: 'Test the connection to away' }).click();
    await notice(page, 'away would take nothing');
    assert.equal(await page.locator('.notice.fault').count(), 1);

    // An export that does not get through: why, parked, and tried again.
    await page.goto(`${gateway}/admin/business-objects`);
    await page.getByRole('link', { name: `Edit ${name}` }).click();
    await page.getByLabel('archive').uncheck();
    await page.getByLabel('away').check();
    await page.getByRole('button', { name: 'Save' }).click();
    await notice(page, `${name} is saved.`);
    await page.getByRole('button', { name: 'Export now' }).click();
    const state = (words) => page.locator('dd .state', { hasText: words });
    const until = async (words) => {
      while (!script && (await state(words).count()) === 0) await page.reload();
      await state(words).waitFor();
    };
    await until('blocked');
    const address = page.url();
    await page.getByText('The last attempt failed.').waitFor();
    await page.goto(`${gateway}/admin/exports?state=queue`);
    await page.getByRole('heading', { name: 'away' }).waitFor();
    await page.goto(address);
    // An attempt that is under way is not interrupted: then it is tried again.
    const park = async () => {
      for (const parked = page.locator('.notice', { hasText: 'It is parked' }); ;) {
        const button = page.getByRole('button', { name: 'Park' });
        if ((await button.count()) === 0) {
          await page.reload();
          continue;
        }
        await button.click();
        await page.locator('.notice').waitFor();
        if ((await parked.count()) > 0) return;
      }
    };
    await park();
    await until('parked');
    await page.goto(`${gateway}/admin/exports?state=parked`);
    await page.getByRole('link', { name, exact: true }).click();
    await page.getByRole('button', { name: 'Try now' }).click();
    await notice(page, 'It is tried now.');
    await park();
    // And one that did: again.
    await page.goto(`${gateway}/admin/exports?state=delivered`);
    await page.getByRole('link', { name, exact: true }).first().click();
    await page.getByRole('button', { name: 'Deliver again' }).click();
    await notice(page, 'Its file is queued again');
    await until('delivered');

    // Two who edit at the same time: the second one is told what the first has changed.
    await page.goto(`${gateway}/admin/business-objects`);
    await page.getByRole('link', { name: `Edit ${name}` }).click();
    const other = await context.newPage();
    await other.goto(page.url());
    await other.getByLabel('Description').fill('by the other one');
    await other.getByRole('button', { name: 'Save' }).click();
    await notice(other, 'is saved');
    await other.close();
    await page.getByLabel('Description').fill('mine');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('alert').getByText('Somebody else has changed').waitFor();
    const changed = page.getByRole('region', { name: 'What is stored now' });
    assert.match(await changed.textContent(), /Description.*by the other one.*mine/s);
    if (script) await accessible(page, 'a conflict');
    await page.getByRole('button', { name: 'Save' }).click();
    await notice(page, 'is saved');
    await page.getByText('mine').waitFor();

    // A mistyped root namespace would take all objects away: it is saved only once that is confirmed.
    const edit = page.getByRole('link', { name: 'Edit', exact: true });
    const mapping = page.getByLabel('Mapping (YAML)');
    const empty = `\`${name}s\` has no objects, and \`${name}\` has some`;
    await edit.click();
    const config = await mapping.inputValue();
    await mapping.fill(config.replace(`path: ${name}:.`, `path: ${name}s:.`));
    if (script) await page.locator('#checked').getByText(empty).waitFor();
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('alert').getByText('2 of 2 objects').waitFor();
    if (script) await accessible(page, 'a confirmation');
    await page.getByRole('button', { name: 'Save anyway' }).click();
    await notice(page, 'is saved');
    await page.getByRole('region', { name: 'Warnings' }).getByText(empty).waitFor();
    if (script) await accessible(page, 'warnings');
    await edit.click();
    await mapping.fill(config);
    await page.getByRole('button', { name: 'Save' }).click();
    await notice(page, 'is saved');

    // GraphQL, with a fault and without.
    await page.goto(`${gateway}/admin/query`);
    await page.getByRole('button', { name: 'Ask' }).click();
    await page.locator('#result', { hasText: '"email": "admin"' }).waitFor();
    await page.getByLabel('GraphQL').fill('{ nothing }');
    await page.getByRole('button', { name: 'Ask' }).click();
    await page.locator('#result', { hasText: '"errors"' }).waitFor();
    if (script) {
      await page.getByText('Types and fields that can be asked for').click();
      await page.locator('#sdl pre', { hasText: 'type Query' }).waitFor();
      await accessible(page, 'the query page');
    }

    // What is lost and what stays is said before anything is deleted.
    await page.goto(`${gateway}/admin/business-objects`);
    await page.getByRole('link', { name: `Delete ${name}` }).click();
    const told = await page.locator('main').textContent();
    assert.match(told, /1 API key for this Business Object/);
    assert.match(told, /2 objects: they stay/);
    assert.match(told, /1 export that no target has taken/);
    await page.getByRole('button', { name: `Delete ${name}` }).click();
    await notice(page, `${name} is deleted`);
    assert.equal(await page.getByRole('row', { name }).count(), 0);
  });
}
