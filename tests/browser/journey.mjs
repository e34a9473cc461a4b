// The steps from a sample to a delivered export, as a user takes them in a browser.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { request } from 'playwright-core';
import { accessible } from './admin.mjs';
import { gateway } from './browser.mjs';

// The data of a plant system: an object with a URI and one without.
export const uri = (name) => `https://plant.example/${name}/101`;
const sampleOf = (name) => [
  { uri: uri(name), name: 'P-101 <b>', flow: 12.50, stages: 3, running: true, built: '2019-05-04', tags: ['new', 'hot'], position: { hall: 'A' }, parts: [{ label: 'Seal' }, { label: 'Shaft' }] },
  { name: 'P-102', flow: 1e3, parts: [] },
];

export const notice = (page, text) => page.locator('.notice', { hasText: text }).waitFor();

// Derives a Business Object from the sample, corrects errors in it, and saves it with the target `archive`.
export async function derive(page, name, { script }) {
  await page.goto(`${gateway}/admin/business-objects`);
  await page.getByRole('link', { name: /derive .*sample/i }).first().click();
  await page.getByLabel('Name').fill(name);

  // The error of an invalid sample is shown at its field.
  await page.getByLabel('Sample', { exact: true }).fill('{"name": ');
  await page.getByRole('button', { name: 'Derive mapping' }).click();
  await page.locator('#sample-fault').waitFor();
  if (script) await accessible(page, 'an invalid sample');
  await page.getByLabel('Sample', { exact: true }).fill(JSON.stringify(sampleOf(name), null, 2));
  await page.getByRole('button', { name: 'Derive mapping' }).click();

  await page.getByRole('heading', { name: 'New Business Object' }).waitFor();
  const config = page.getByLabel('Mapping (YAML)');
  const mapping = await config.inputValue();
  for (const part of [`path: ${name}:.`, 'type: id', 'type: number', 'type: integer', 'type: boolean', 'type: date', 'type: array', 'path: v:position/']) {
    assert.ok(mapping.includes(part), `${part} is not in\n${mapping}`);
  }
  const checked = page.locator('#checked');
  await checked.getByText('The sample matches').waitFor();
  assert.ok((await checked.textContent()).includes(uri(name)));
  assert.match(await checked.textContent(), /"name": "P-101 <b>"/);

  // An error in the mapping is marked at its line, and its link selects it.
  const wrong = mapping.replace('type: integer', 'type: integr');
  const line = wrong.split('\n').findIndex((text) => text.includes('integr')) + 1;
  await config.fill(wrong);
  if (!script) await page.getByRole('button', { name: 'Check', exact: true }).click();
  const link = checked.getByRole('link', { name: `Line ${line},` });
  await link.waitFor();
  assert.match(await checked.textContent(), /did you mean `integer`/);
  if (script) {
    assert.equal((await page.locator('.gutter .fault').textContent()).trim(), `✗ ${line}`);
    await accessible(page, 'a mapping with an error');
    await link.click();
    const marked = await config.evaluate((e) => e.value.slice(e.selectionStart, e.selectionEnd));
    assert.equal(marked, 'integr');
  }
  // An invalid mapping is not saved, and the form keeps the input.
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('alert').waitFor();
  assert.equal(await page.getByLabel('Mapping (YAML)').inputValue(), wrong);
  await page.locator('#config-fault').waitFor();
  await page.getByLabel('Mapping (YAML)').fill(mapping);
  if (script) await checked.getByText('The sample matches').waitFor();

  // Every invalid field shows its error.
  await page.getByLabel('archive').check();
  await page.getByLabel('Schedule').fill('every day');
  await page.getByLabel('Keep objects for').fill('a year');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.locator('#schedule-fault').waitFor();
  await page.locator('#retention-fault').waitFor();
  assert.ok(await page.getByLabel('archive').isChecked());
  await page.getByLabel('Schedule').fill('0 5 * * *');
  await page.getByLabel('Time zone').fill('Europe/Vienna');
  await page.getByLabel('Keep objects for').fill('');
  await page.getByRole('button', { name: 'Save' }).click();
  await notice(page, `${name} was created.`);
  await page.getByRole('heading', { level: 1, name }).waitFor();
  await page.getByText('every day at 05:00 (Europe/Vienna)').waitFor();
  await page.getByText(/next runs: \w{3} 2/).waitFor();
}

// Creates an API key for the Business Object. Sends data with it to the address on the Business Object's page, as a
// plant system does.
export async function send(page, name) {
  const address = await page.locator('#address').textContent();
  await page.goto(`${gateway}/admin/keys/new`);
  await page.getByLabel('Name').fill(`plant system of ${name}`);
  await page.getByLabel('Role').selectOption('Contributor');
  await page.getByRole('group', { name: 'Business Objects' }).getByLabel(name, { exact: true }).check();
  await page.getByRole('button', { name: 'Create key' }).click();
  await page.locator('#key').waitFor();
  const key = (await page.locator('#key').textContent()).trim();
  const plant = await request.newContext({ extraHTTPHeaders: { Authorization: `Bearer ${key}` } });
  const answer = await plant.post(address, { data: { data: sampleOf(name) } });
  assert.equal(answer.status(), 200, await answer.text());
  assert.equal((await answer.json()).created, sampleOf(name).length);
  await plant.dispose();
}

// Exports all objects, waits for the delivery, and downloads the file. The target has the same bytes.
export async function deliver(page, name, { script }) {
  await page.goto(`${gateway}/admin/business-objects`);
  await page.getByRole('link', { name, exact: true }).click();
  await page.getByRole('button', { name: 'Export now' }).click();
  await notice(page, `An export of ${sampleOf(name).length} objects is queued for archive.`);
  const delivered = page.locator('dd .state', { hasText: 'delivered' });
  // With script the page updates automatically.
  while (!script && (await delivered.count()) === 0) await page.reload();
  await delivered.waitFor();
  const shown = await page.locator('pre.file').textContent();
  const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('link', { name: 'Download' }).click()]);
  const bytes = await readFile(await download.path());
  assert.equal(shown, bytes.toString());
  const file = JSON.parse(bytes);
  assert.equal(file.metadata.object_count, sampleOf(name).length);
  assert.equal(file.metadata.object_type, name);
  assert.ok(bytes.includes('"flow":1000') || bytes.includes('"flow":1e3'), 'numbers keep their notation');
  const text = await page.locator('dl.pairs').textContent();
  assert.ok(text.includes(createHash('sha256').update(bytes).digest('hex')), text);
  const key = await page.locator('dt:text-is("Key") + dd').textContent();
  assert.deepEqual(await readFile(`${process.env.DIR}/data/buckets/archive/${key.trim()}`), bytes);
}
