// Explore: a person finds the sensor over its limit, sees its week, filters to the shift, downloads the CSV and sends it back
// unchanged, on a tablet, with script and without.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { accessible, api, everyLook, furnish, people, reachable, signIn } from './admin.mjs';
import { browse, counted, gateway, resize, wellMade } from './browser.mjs';

const config = `type: object
path: "Reading:."
key: tag
fields:
  tag: { type: string, path: "<https://plant.example/tag>", required: true }
  sensor: { type: string, path: "<https://plant.example/sensor>" }
  state: { type: string, path: "<https://plant.example/state>", values: { OK: ok, HIGH: over the limit } }
  value: { type: number, path: "<https://plant.example/value>" }
  at: { type: dateTime, path: "<https://plant.example/at>" }
  pump: { type: resource, path: "<https://plant.example/pump>" }
`;

await furnish();
const { ask, close } = await api(people.Admin);
const { id } = await ask('PUT', '/api/v1/business-objects', { name: 'Reading', enabled: true, config });
const pump = (await ask('GET', '/api/v1/business-objects/Pump/objects')).items[0].uri;
const pad = (number) => String(number).padStart(2, '0');
// A week of four sensors, every two hours. The sensor TE-3 is over its limit on Wednesday.
const data = [...Array(4 * 84).keys()].map((number) => {
  const [sensor, at] = [number % 4, Math.floor(number / 4)];
  const isHigh = sensor === 3 && at >= 24 && at < 36;
  return {
    tag: `R-${pad(sensor)}-${pad(at)}`, sensor: `TE-${sensor}`, state: isHigh ? 'HIGH' : 'OK', value: (isHigh ? 90 : 40 + sensor) + (at % 5) / 2,
    at: `2026-03-${pad(2 + Math.floor(at / 12))}T${pad((at * 2) % 24)}:00:00Z`, pump,
  };
});
await ask('POST', '/api/v1/business-objects/Reading', { data });
const long = { name: 'A Business Object with a very long name that nobody can read at once', enabled: true, config: config.replaceAll('Reading:', 'Long:') };
const { id: empty } = await ask('PUT', '/api/v1/business-objects', long);

for (const javaScriptEnabled of [true, false]) {
  await browse({ javaScriptEnabled, viewport: { width: 820, height: 1180 }, timezoneId: 'Europe/Vienna', acceptDownloads: true }, async (page) => {
    await signIn(page, people.Contributor);
    await page.goto(`${gateway}/admin/business-objects`);
    await page.getByRole('link', { name: 'Explore Reading', exact: true }).click();
    await page.getByRole('heading', { level: 1, name: 'Explore Reading' }).waitFor();
    // The page learns the time zone of the browser.
    await page.getByText(javaScriptEnabled ? 'Times in Europe/Vienna.' : 'Times in UTC.').waitFor();
    const rows = page.getByRole('region', { name: 'Objects', exact: true }).locator('tbody tr');
    await counted(rows, 50);
    const parts = async () => {
      // Without script, a link shows the parts, and they stay.
      const show = page.getByRole('link', { name: 'Show charts and values' });
      if (!javaScriptEnabled && (await show.count())) await show.click();
      await page.getByRole('img', { name: /^Objects per / }).waitFor();
      await page.getByRole('heading', { level: 3, name: 'state' }).waitFor();
    };
    await parts();
    if (javaScriptEnabled) {
      await everyLook(page, 'explore');
      await resize(page, 820, 1180);
    }

    // The sensor over its limit: by the value of a facet, then by a value of the table.
    const values = page.getByRole('region', { name: 'Values', exact: true });
    await values.getByRole('link', { name: 'HIGH', exact: true }).click();
    await page.getByText('12 objects match').waitFor();
    await rows.first().getByRole('link', { name: 'TE-3', exact: true }).click();
    await page.getByRole('link', { name: 'Remove the filter sensor is TE-3' }).waitFor();
    await page.getByRole('link', { name: 'Remove the filter state is HIGH' }).click();
    await page.getByText('84 objects match').waitFor();

    // Its week, as a line with its extremes.
    await page.getByText('Choose what the charts show').click();
    await page.getByLabel('Number', { exact: true }).selectOption('value');
    await page.getByRole('button', { name: 'Show', exact: true }).click();
    await parts();
    await page.getByRole('img', { name: /^value per day: least, average and greatest; between 0 and 92/ }).waitFor();
    // The greatest number is on the edge, and its line is whole.
    if (javaScriptEnabled) assert.equal(await page.locator('svg.lines').evaluate((lines) => getComputedStyle(lines).overflow), 'visible');
    if (javaScriptEnabled) {
      await everyLook(page, 'explore with a chart');
      await reachable(page, 'explore with a chart');
      await resize(page, 820, 1180);
    }

    // A line for each value of a field.
    await page.getByText('Choose what the charts show').click();
    await page.getByLabel('A line for each', { exact: true }).selectOption('state');
    await page.getByRole('button', { name: 'Show', exact: true }).click();
    await parts();
    await page.getByRole('img', { name: /^value per day: average; / }).waitFor();
    if (javaScriptEnabled) {
      await everyLook(page, 'explore with lines');
      await resize(page, 820, 1180);
    }

    // The shift: with script by dragging over the bars, otherwise by two dates.
    if (javaScriptEnabled) {
      const bars = page.getByRole('img', { name: /^Objects per day/ });
      const box = await bars.boundingBox();
      await page.mouse.move(box.x + box.width * 0.25, box.y + box.height / 2);
      await page.mouse.down();
      await page.mouse.move(box.x + box.width * 0.5, box.y + box.height / 2, { steps: 4 });
      await page.mouse.up();
      await page.getByRole('link', { name: /^Remove the filter at is at least 2026-03-0/ }).waitFor();
      const address = page.url();
      assert.match(address, /filter\.at\.atLeast=2026.*filter\.at\.before=2026/);
      await page.goto(`${gateway}/admin/objects/${id}?filter.sensor=TE-3`);
    }
    await parts();
    await page.getByLabel('From', { exact: true }).fill('2026-03-04');
    await page.getByLabel('To', { exact: true }).fill('2026-03-04');
    await page.getByRole('button', { name: 'Narrow' }).click();
    await page.getByText('12 objects match').waitFor();
    // The labels of its hours are longer than those of days, also on a phone.
    await parts();
    await resize(page, 360, 800);
    await wellMade(page);
    await resize(page, 820, 1180);

    // The download has just these objects, and sending it back changes nothing.
    const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('link', { name: 'CSV', exact: true }).click()]);
    const text = await readFile(await download.path(), 'utf8');
    assert.equal(text.trim().split('\r\n').length, 13, text);
    assert.ok(text.split('\r\n').slice(1, -1).every((line) => line.includes('TE-3')), text);
    const answer = await ask('POST', '/api/v1/business-objects/Reading?mode=MERGE&arrayDelimiter=%7C&arrayEscape=true', text, { 'Content-Type': 'text/csv' });
    assert.equal(answer.unchanged, 12, JSON.stringify(answer));

    // The same question for programs.
    await page.getByRole('link', { name: 'Copy as curl, Python, GraphQL, SPARQL' }).click();
    await page.getByRole('heading', { level: 1, name: 'Requests for Reading' }).waitFor();
    for (const name of ['curl', 'Python', 'GraphQL', 'SPARQL']) await page.getByRole('heading', { level: 2, name, exact: true }).waitFor();
    if (javaScriptEnabled) await everyLook(page, 'requests');

    // Columns are kept, and a filter that hides everything says so.
    await resize(page, 820, 1180);
    await page.goto(`${gateway}/admin/objects/${id}`);
    await page.getByText('Columns', { exact: true }).click();
    await page.getByLabel('Further column').selectOption('pump');
    await page.getByRole('button', { name: 'Add column' }).click();
    await page.getByRole('columnheader', { name: 'pump' }).waitFor();
    await page.getByText('Columns', { exact: true }).click();
    await page.getByRole('button', { name: 'Move pump to the left' }).click();
    await page.getByText('Columns', { exact: true }).click();
    await page.getByRole('button', { name: 'Default columns' }).click();
    await counted(page.getByRole('columnheader', { name: 'pump' }), 0);
    await page.getByText('Columns', { exact: true }).click();
    await counted(page.getByRole('button', { name: 'Default columns' }), 0);
    await page.getByLabel('Further column').selectOption('pump');
    await page.getByRole('button', { name: 'Add column' }).click();
    await page.getByRole('columnheader', { name: 'pump' }).waitFor();
    await page.goto(`${gateway}/admin/objects/${id}?filter.state=HIGH&filter.value.before=50`);
    await page.getByRole('heading', { level: 2, name: 'No object matches.' }).waitFor();
    await page.getByText('12 objects match without').waitFor();
    if (javaScriptEnabled) await everyLook(page, 'explore without a match');
    await page.goto(`${gateway}/admin/objects/${id}`);
    await page.getByRole('columnheader', { name: 'pump' }).waitFor();

    // A Business Object without objects says how to send some.
    await page.goto(`${gateway}/admin/objects/${empty}`);
    await page.getByRole('heading', { level: 2, name: 'There are no objects yet.' }).waitFor();
    if (javaScriptEnabled) await everyLook(page, 'explore without objects');
    if (!javaScriptEnabled) return;

    // Values are suggested while somebody types, and a wrong one is explained.
    await page.goto(`${gateway}/admin/objects/${id}`);
    await page.getByLabel('Field', { exact: true }).selectOption('sensor');
    const value = page.getByRole('combobox', { name: 'Value', exact: true });
    await value.fill('TE');
    const suggested = page.getByRole('listbox', { name: 'Suggestions' }).getByRole('option');
    await counted(suggested, 4);
    await accessible(page, 'explore with suggestions');
    await value.press('ArrowDown');
    await value.press('ArrowDown');
    await counted(page.getByRole('option', { name: 'TE-1', selected: true }), 1);
    await value.press('Enter');
    assert.equal(await value.inputValue(), 'TE-1');
    await counted(suggested, 0);
    await value.fill('TE-');
    await counted(suggested, 4);
    await value.press('Escape');
    await counted(suggested, 0);
    await value.click();
    await suggested.filter({ hasText: 'TE-2' }).click();
    await value.press('Enter');
    await page.getByRole('link', { name: 'Remove the filter sensor contains TE-2' }).waitFor();
    await page.goto(`${gateway}/admin/objects/${id}`);
    await page.getByLabel('Field', { exact: true }).selectOption('value');
    await page.getByLabel('Operator', { exact: true }).selectOption('after');
    await page.getByLabel('Value', { exact: true }).fill('high');
    await page.getByRole('button', { name: 'Add filter' }).click();
    await page.getByRole('alert').waitFor();
    await accessible(page, 'explore with a wrong filter');
    // It is still in the form, and the table is there without it.
    assert.equal(await page.getByLabel('Value', { exact: true }).inputValue(), 'high');
    assert.equal(await page.getByLabel('Operator', { exact: true }).inputValue(), 'after');
    await counted(rows, 50);
    // The address has the state, whatever form was sent.
    await page.getByLabel('Value', { exact: true }).fill('80');
    await page.getByRole('button', { name: 'Add filter' }).click();
    await page.getByText('12 objects match').waitFor();
    assert.match(page.url(), /\?filter\.value\.after=80/);
  });
}
await close();
