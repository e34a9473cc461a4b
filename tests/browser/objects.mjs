// Objects: a person finds the newest reading of a sensor in three clicks, corrects a wrong value, sees what somebody else has
// changed meanwhile, and deletes an object, with script and without.
import assert from 'node:assert/strict';
import { accessible, api, everyLook, furnish, people, reachable, signIn } from './admin.mjs';
import { browse, counted, gateway, resize } from './browser.mjs';

const config = `type: object
path: "Sensor:."
fields:
  tag: { type: string, path: "<https://plant.example/tag>", required: true }
  limit: { type: number, path: "<https://plant.example/limit>" }
  critical: { type: boolean, path: "<https://plant.example/critical>" }
  marks: { type: array, path: "<https://plant.example/mark>" }
  pump: { type: resource, path: "<https://plant.example/pump>" }
  place: { type: object, path: "<https://plant.example/place>/Place:.", fields: { room: { type: string, path: "<https://plant.example/room>" } } }
  readings: { type: array, path: "<https://plant.example/reading>", elements: { type: object, path: "Reading:.", fields: { at: { type: dateTime, path: "<https://plant.example/at>" }, value: { type: number, path: "<https://plant.example/value>" } } } }
`;

await furnish();
const { ask, close } = await api(people.Admin);
const { id } = await ask('PUT', '/api/v1/business-objects', { name: 'Sensor', enabled: true, config });
const pump = (await ask('GET', '/api/v1/business-objects/Pump/objects')).items[0].uri;
const pad = (number) => String(number).padStart(2, '0');
const readings = [...Array(45).keys()].map((at) => ({ at: `2026-03-${pad(((at * 5) % 28) + 1)}T12:${pad(at)}:00Z`, value: at }));
const data = [...Array(70).keys()].map((at) => ({ uri: `https://plant.example/sensors/${pad(at)}`, tag: `TE-${at}`, limit: at, pump, ...(at === 7 ? { readings, marks: ['warm', 'new'], critical: true, place: { room: 'R 1' } } : {}) }));
await ask('POST', '/api/v1/business-objects/Sensor', { data });
const newest = [...readings].sort((a, b) => (a.at < b.at ? 1 : -1))[0];
const uri = data[7].uri;
const stored = () => ask('GET', `/api/v1/business-objects/Sensor/objects?uri=${encodeURIComponent(uri)}`);
const notice = (page, text) => page.locator('.notice', { hasText: text }).waitFor();
const page = (path) => `${gateway}/admin/${path}?uri=${encodeURIComponent(uri)}&view=${id}`;

for (const javaScriptEnabled of [true, false]) {
  await browse({ javaScriptEnabled, viewport: { width: 820, height: 1180 } }, async (screen) => {
    await signIn(screen, people.Contributor);

    // Find the newest reading of a sensor in at most three clicks: from the overview, and from the list of Business Objects.
    let clicks = 0;
    const click = async (place, link) => {
      await place.getByRole('link', { name: link, exact: true }).click();
      clicks += 1;
    };
    const showsNewest = async () => {
      await screen.getByText('70 objects').waitFor();
      await click(screen, 'TE-7');
      const first = screen.locator('.tree tbody tr').first();
      await first.waitFor();
      assert.ok(await first.isVisible());
      const text = await first.textContent();
      assert.ok(text.includes(newest.at) && text.includes(String(newest.value)), text);
      assert.ok(clicks <= 3, `${clicks} clicks`);
    };
    await click(screen.getByRole('region', { name: 'Objects' }), 'Sensor');
    await showsNewest();
    clicks = 0;
    await screen.goto(`${gateway}/admin/business-objects`);
    await click(screen, 'Explore Sensor');
    await showsNewest();

    // The order, the filters and the page are in the address.
    await screen.goto(`${gateway}/admin/objects/${id}`);
    const limitHead = screen.getByRole('columnheader', { name: 'limit' });
    await limitHead.getByRole('link').click();
    await screen.locator('th[aria-sort="ascending"]', { hasText: 'limit' }).waitFor();
    await limitHead.getByRole('link').click();
    await screen.locator('th[aria-sort="descending"]', { hasText: 'limit' }).waitFor();
    await screen.getByRole('link', { name: 'Next page' }).click();
    await screen.getByRole('link', { name: 'TE-7', exact: true }).waitFor();
    const address = screen.url();
    await screen.goto(`${gateway}/admin`);
    await screen.goto(address);
    await screen.getByRole('link', { name: 'TE-7', exact: true }).waitFor();

    // A wrong value is corrected, after the difference was shown.
    const limit = javaScriptEnabled ? 88.5 : 99.25;
    const before = await stored();
    await screen.goto(page('object'));
    await screen.getByRole('link', { name: 'Edit' }).click();
    await screen.getByLabel('limit').fill('eighty');
    await screen.getByRole('button', { name: 'Show the difference' }).click();
    await screen.locator('.wrong', { hasText: '"eighty" is not a number' }).waitFor();
    assert.equal(await screen.getByLabel('limit').getAttribute('aria-invalid'), 'true');
    if (javaScriptEnabled) await everyLook(screen, 'form of an object with an error');
    await screen.getByLabel('limit').fill(String(limit));
    await screen.getByRole('button', { name: 'Add to marks' }).click();
    await screen.getByLabel('marks 3', { exact: true }).fill('checked');
    await screen.getByRole('button', { name: 'Remove marks 1' }).click();
    await counted(screen.getByLabel('marks 3', { exact: true }), 0);
    await screen.getByLabel('marks 2', { exact: true }).waitFor();
    // The Enter key shows the difference, too.
    await screen.getByLabel('limit').press('Enter');
    await screen.getByRole('heading', { name: 'Save TE-7?' }).waitFor();
    const row = screen.getByRole('row', { name: /^limit/ });
    assert.deepEqual([await row.locator('del').textContent(), await row.locator('ins').textContent()], [String(before.limit), String(limit)]);
    if (javaScriptEnabled) {
      await everyLook(screen, 'difference of an object');
      await reachable(screen, 'difference of an object');
      await resize(screen, 820, 1180);
    }
    await screen.getByRole('button', { name: 'Back to the form' }).click();
    assert.equal(await screen.getByLabel('limit').inputValue(), String(limit));
    await screen.getByRole('button', { name: 'Show the difference' }).click();
    await screen.getByRole('button', { name: 'Save' }).click();
    await notice(screen, 'The object was saved.');
    const { limit: _, marks, ...rest } = await stored();
    const { limit: __, marks: earlier, ...same } = before;
    assert.deepEqual(rest, same);
    assert.deepEqual(marks, [...earlier.slice(1), 'checked'].filter((one, at, all) => all.indexOf(one) === at).sort());

    // What somebody else changes meanwhile is shown, and the input is kept.
    await screen.goto(page('object/edit'));
    await screen.getByLabel('limit').fill('3');
    await ask('POST', '/api/v1/business-objects/Sensor?mode=MERGE', { data: [{ uri, critical: javaScriptEnabled ? false : true, pump: null }] });
    await screen.getByRole('button', { name: 'Show the difference' }).click();
    await screen.getByText('Somebody has changed the object meanwhile.').waitFor();
    assert.equal(await screen.getByLabel('limit').inputValue(), '3');
    if (javaScriptEnabled) await accessible(screen, 'form of an object that has changed');
    await screen.getByRole('link', { name: 'Cancel' }).click();
    await screen.getByRole('heading', { level: 1, name: 'TE-7', exact: true }).waitFor();
    await ask('POST', '/api/v1/business-objects/Sensor?mode=MERGE', { data: [{ uri, pump }] });

    // The drawing leads from object to object, on a phone too.
    await resize(screen, 360, 800);
    await screen.getByRole('link', { name: 'Graph', exact: true }).click();
    await screen.locator('svg.narrow').getByRole('link', { name: /^P-[12]/ }).click();
    await screen.getByRole('heading', { level: 1, name: /^P-[12]$/ }).waitFor();
    const drawn = screen.locator('svg.narrow a').first();
    const box = await drawn.boundingBox();
    assert.ok(box.height >= 24 && box.width >= 200, JSON.stringify(box));
    if (javaScriptEnabled) await everyLook(screen, 'drawing of an object with many references');

    // Deleting shows what is deleted.
    const gone = `https://plant.example/sensors/${javaScriptEnabled ? 20 : 21}`;
    await screen.goto(`${gateway}/admin/object?uri=${encodeURIComponent(gone)}`);
    await screen.getByRole('link', { name: 'Delete' }).click();
    await screen.getByRole('heading', { name: /^Delete TE-2[01]\?$/ }).waitFor();
    await screen.getByRole('button', { name: 'Delete' }).click();
    await notice(screen, 'The object was deleted.');
    assert.equal((await screen.goto(`${gateway}/admin/object?uri=${encodeURIComponent(gone)}`)).status(), 404);
  });
  // The second round begins as the first did.
  const { readings: _, ...flat } = data[7];
  await ask('POST', '/api/v1/business-objects/Sensor?mode=MERGE', { data: [flat] });
  await ask('POST', '/api/v1/business-objects/Sensor', { data: [data[20]] });
}

// A User sees the pages and may not change anything.
await browse({}, async (screen) => {
  await signIn(screen, people.User, `/admin/object?uri=${encodeURIComponent(uri)}`);
  await screen.getByRole('heading', { level: 1, name: 'TE-7' }).waitFor();
  assert.equal(await screen.getByRole('link', { name: 'Edit' }).count(), 0);
  assert.equal((await screen.goto(page('object/edit'))).status(), 403);
});
await close();
