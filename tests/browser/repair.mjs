// Understand and repair a blocked target: from the overview to the cause, the remedy and the setting, then the repair on the
// machine, and the delivered export. With script and without, on a tablet.
import assert from 'node:assert/strict';
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { accessible, api, everyLook, people, pump, signIn } from './admin.mjs';
import { browse, counted, gateway, resize, until } from './browser.mjs';

// The target `historian` writes into a folder below this one, which is a file instead.
const mount = `${process.env.DIR}/mount`;
const { ask, close } = await api(people.Admin);
await ask('PUT', '/api/v1/business-objects', { ...pump, pushTargets: [{ bucketName: 'historian' }] });
await ask('POST', '/api/v1/business-objects/Pump', { data: [{ name: 'P-1', flow: 12.5 }] });

for (const [exports, javaScriptEnabled] of [true, false].entries()) {
  await rm(mount, { recursive: true, force: true });
  await writeFile(mount, 'not a folder');
  await ask('POST', '/api/v1/business-objects/Pump/push');
  await until(async () => (await ask('GET', '/api/v1/targets')).items.some(({ name, blocked }) => name === 'historian' && blocked));

  await browse({ javaScriptEnabled, viewport: { width: 820, height: 1180 } }, async (page) => {
    const state = (words) => page.locator('h1 .state', { hasText: words });
    const shows = async (locator) => {
      while (!javaScriptEnabled && (await locator.count()) === 0) await page.reload();
      await locator.first().waitFor();
    };
    // The overview says what is wrong, and leads to what can be done.
    await signIn(page, people.Admin);
    const concern = page.getByRole('listitem').filter({ hasText: 'historian has been blocked' });
    assert.match(await concern.textContent(), /1 export waits for this target/);
    // Every page has the same word for its state.
    await page.getByRole('row', { name: 'historian' }).locator('.state', { hasText: 'blocked' }).waitFor();
    await concern.getByRole('link', { name: 'Details and remedy' }).click();
    await state('blocked').waitFor();
    const failure = page.getByRole('region', { name: 'What failed' });
    assert.match(await failure.textContent(), new RegExp(`Export ${exports + 1} of Pump was not delivered.*the path of the directory is a file.*Remedy.*Check that the folder is there.*Settings to check.*historian\\.path.*mount/historian.*command line`, 's'));
    if (javaScriptEnabled) {
      await everyLook(page, 'blocked target');
      await resize(page, 820, 1180);
    }
    // The test says the same before the repair, and retrying does not help yet.
    await page.getByRole('button', { name: 'Test connection to historian' }).click();
    await page.getByRole('alert').filter({ hasText: 'historian would not accept exports' }).waitFor();
    await failure.getByRole('button', { name: 'Retry now' }).click();
    await page.getByRole('status').filter({ hasText: 'The export is retried now.' }).waitFor();
    await page.getByRole('link', { name: 'historian', exact: true }).click();
    await shows(state('blocked'));

    await rm(mount);
    // A folder that exports were delivered to is not created again: its disk could be missing.
    await mkdir(`${mount}/historian/historian`, { recursive: true });
    await page.getByRole('button', { name: 'Test connection to historian' }).click();
    await page.getByRole('status').filter({ hasText: 'nothing was found that would prevent a delivery' }).waitFor();
    // The gateway may have retried meanwhile.
    const retry = page.getByRole('button', { name: 'Retry now' });
    if ((await retry.count()) > 0) await retry.click({ timeout: 10_000 }).catch(() => {});
    await page.goto(`${gateway}/admin/targets/historian`);
    await shows(state('reachable'));
    await counted(page.getByRole('region', { name: 'What failed' }), 0);
    assert.equal((await readdir(`${mount}/historian/historian/Pump`)).filter((name) => name.endsWith('.json')).length, 1);
    await page.goto(`${gateway}/admin`);
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    await counted(page.getByText('historian has been blocked'), 0);
    if (javaScriptEnabled) await accessible(page, 'the overview after the repair');
  });
}
await close();
