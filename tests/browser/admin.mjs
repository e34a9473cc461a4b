// Shared parts of the tests of the administration interface: test data in a gateway, users of every role, and
// checks for every page.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { request } from 'playwright-core';
import { gateway, stepTimeout, resize, styled, withoutUpdates, until, wellMade } from './browser.mjs';

const axe = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

export const secret = 'correct horse battery staple';
export const people = {
  Admin: { email: 'admin', password: process.env.PASSWORD },
  Contributor: { email: 'carla@plant.example', givenName: 'Carla', familyName: 'Curie', password: secret },
  User: { email: 'uwe@plant.example', givenName: 'Uwe', familyName: 'Unruh', organization: 'Plant Nord', password: secret },
};

// Returns a client of the API with the session of this user, as a script in a page of the gateway has it. Each request
// has its own connection: the gateway may close an idle one in the moment in which it is used again.
export async function api(person) {
  const context = await request.newContext({ baseURL: gateway, extraHTTPHeaders: { Origin: gateway, Connection: 'close' }, timeout: stepTimeout });
  const ask = async (method, path, data, headers = {}) => {
    const answer = await context.fetch(path, { method, data, headers });
    assert.ok(answer.ok(), `${method} ${path} returned ${answer.status()}: ${await answer.text()}`);
    const text = await answer.text();
    return text ? JSON.parse(text) : null;
  };
  await ask('POST', '/login', { email: person.email, password: person.password });
  return { ask, close: () => context.dispose() };
}

export const pump = {
  name: 'Pump',
  description: 'Pumps of the plant',
  enabled: true,
  config: 'type: object\npath: "Pump:."\nfields:\n  uri: { type: id }\n  name: { type: string, path: "<https://plant.example/name>", required: true }\n  flow: { type: number, path: "<https://plant.example/flow>" }\n',
  conditions: [],
  pushTargets: [{ bucketName: 'archive' }],
};

const shapes = `@prefix sh: <http://www.w3.org/ns/shacl#> .
<https://plant.example/PumpShape> a sh:NodeShape ; sh:targetSubjectsOf <https://plant.example/flow> .
`;

// Creates a user of each role, a Business Object with objects and an export, a namespace, a shapes graph, and an API key.
export async function furnish() {
  const { ask, close } = await api(people.Admin);
  for (const role of ['Contributor', 'User']) {
    const { email, givenName, familyName, organization, password } = people[role];
    await ask('POST', '/api/v1/users', { email, givenName, familyName, organization, password, roles: [role] });
  }
  await ask('PUT', '/api/v1/business-objects', pump);
  await ask('POST', '/api/v1/business-objects/Pump', { data: [{ name: 'P-1', flow: 12.5 }, { name: 'P-2' }] });
  await ask('POST', '/api/v1/business-objects/Pump/push');
  await until(async () => (await ask('GET', '/api/v1/exports')).items.every(({ status }) => status === 'delivered'));
  await ask('PUT', '/api/v1/namespaces/Tank', { uriBase: 'https://plant.example/id/Tank/', generator: 'counter' });
  await ask('PUT', '/api/v1/shapes/pumps', shapes, { 'Content-Type': 'text/turtle' });
  await ask('POST', '/api/v1/api-keys', { name: 'line 4', role: 'Contributor', businessObject: 'Pump' });
  await close();
}

const valveShapes = `@prefix sh: <http://www.w3.org/ns/shacl#> .
@prefix v: <https://plant.example/> .
v:ValveShape a sh:NodeShape ; sh:targetSubjectsOf v:name ;
  sh:property [ sh:path v:name ; sh:minLength 3 ; sh:severity sh:Warning ; sh:message "The name is too short for a label."@en ] ;
  sh:property [ sh:path v:pressure ; sh:minInclusive 0 ] .
`;

// Creates a Business Object with shapes that its objects violate, and waits for a report about it.
export async function assess(ask) {
  await ask('PUT', '/api/v1/shapes/valves', valveShapes, { 'Content-Type': 'text/turtle' });
  const config = `type: object\npath: Valve:.\nfields:\n  name: {type: string, path: <https://plant.example/name>}\n  pressure: {type: number, path: <https://plant.example/pressure>}\n`;
  await ask('PUT', '/api/v1/business-objects', { name: 'Valve', enabled: true, config, validation: { shapes: ['valves'], mode: 'warn' } });
  const data = [...Array(110).keys()].map((at) => ({ name: at % 4 ? `V-${at}` : 'V', pressure: at % 2 ? 3 : -1.5 }));
  await ask('POST', '/api/v1/business-objects/Valve', { data });
  const { id } = await ask('POST', '/api/v1/business-objects/Valve/validation');
  await until(async () => (await ask('GET', `/api/v1/validations/${id}`)).endedAt);
}

const filterShapes = `@prefix sh: <http://www.w3.org/ns/shacl#> .
@prefix v: <https://plant.example/> .
v:FilterShape a sh:NodeShape ; sh:targetSubjectsOf v:pore ;
  sh:property [ sh:path v:pore ; sh:maxInclusive 50 ; sh:message "The pores are larger than the standard allows."@en ] .
`;

export const filter = {
  name: 'Filter',
  description: 'Filters of the plant',
  enabled: true,
  config: `type: object
path: "Filter:."
fields:
  name: { type: string, path: "<https://plant.example/name>", required: true }
  pore: { type: number, path: "<https://plant.example/pore>" }
  tags: { type: array, path: "<https://plant.example/tag>", elements: string }
  parts: { type: array, path: "<https://plant.example/part>", elements: { type: object, path: "Part:.", fields: { label: { type: string, path: "<https://plant.example/label>" } } } }
`,
  validation: { shapes: ['filters'], mode: 'warn' },
  review: 'optional',
};

// Creates a Business Object with a review, a group, and a change of the Contributor that all users of `people` see.
// Returns its id.
export async function propose(ask) {
  await ask('PUT', '/api/v1/groups/shift%20leaders', { members: [people.User.email], claimValues: ['0f6c2b3e-8d0a-4a53-9c53-5d1f0f5b7c11'] });
  await ask('PUT', '/api/v1/shapes/filters', filterShapes, { 'Content-Type': 'text/turtle' });
  await ask('PUT', '/api/v1/business-objects', filter);
  const parts = [{ label: 'Seal' }, { label: 'Mesh' }];
  const { objects } = await ask('POST', '/api/v1/business-objects/Filter', { data: [{ name: 'F-1', pore: 20, tags: ['coarse'], parts }, { name: 'F-2', pore: 10 }] });
  const carla = await api(people.Contributor);
  const data = [{ uri: objects[0].uri, name: 'F-1', pore: 80.5, tags: ['coarse', 'new'], parts: [{ label: 'Long seal' }] }, { name: 'F-3', pore: 5 }];
  const owners = 'changeOwners=user:uwe@plant.example&changeOwners=group:nobody';
  const { id } = await carla.ask('POST', `/api/v1/business-objects/Filter?mode=REPLACE&${owners}`, { data });
  await carla.close();
  return id;
}

// Opens a path, which redirects to the sign-in page, and signs in there.
export async function signIn(page, person, path = '/admin') {
  await page.goto(`${gateway}${path}`);
  await page.getByLabel('Email').fill(person.email);
  await page.getByLabel('Password').fill(person.password);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.waitForURL((url) => !url.pathname.startsWith('/login'));
}

// Asserts that axe-core finds no violation of WCAG 2.2 AA or of its own best practices.
export async function accessible(page, where) {
  await styled(page);
  await page.evaluate(axe);
  const { violations } = await withoutUpdates(page, () => page.evaluate(() => globalThis.axe.run(document, {
    resultTypes: ['violations'],
    runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'],
  })));
  const found = violations.map(({ id, help, nodes }) => `${id}: ${help}\n  ${nodes.map((node) => `${node.html}\n  ${node.failureSummary}`).join('\n  ')}`);
  assert.deepEqual(found, [], where);
}

// The combinations of screen width and color scheme: phone, tablet and desktop, light and dark.
export const looks = [360, 820, 1440].flatMap((width) => ['light', 'dark'].map((colorScheme) => ({ width, colorScheme })));

// Checks one page in every combination. Saves screenshots in the folder SCREENSHOTS, if that is set.
export async function everyLook(page, name) {
  for (const { width, colorScheme } of looks) {
    await page.emulateMedia({ colorScheme });
    await resize(page, width, 800);
    await wellMade(page);
    // A tablet has the navigation of a phone and the tables of a desktop.
    if (width !== 820) await accessible(page, `${name} at ${width} pixels, ${colorScheme}`);
    if (process.env.SCREENSHOTS) {
      const file = `${name.replaceAll(/[^a-z0-9]+/gi, '-')}-${width}-${colorScheme}.png`;
      await page.screenshot({ path: `${process.env.SCREENSHOTS}/${file}`, fullPage: true });
    }
  }
}

// Asserts that the Tab key reaches every control and link, and that the focus is visible on each.
export async function reachable(page, name) {
  await styled(page);
  assert.deepEqual(await withoutUpdates(page, () => findUnreachable(page)), [], `${name}: the Tab key does not reach these elements`);
}

async function findUnreachable(page) {
  await page.evaluate(() => {
    document.activeElement?.blur();
    getSelection().removeAllRanges();
    const usable = 'a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex="0"]';
    globalThis.unreached = new Set([...document.querySelectorAll(usable)].filter((e) => e.checkVisibility({ visibilityProperty: true, contentVisibilityAuto: true }) && !e.disabled));
  });
  const all = await page.evaluate(() => globalThis.unreached.size);
  for (let step = 0; step < all + 10; step += 1) {
    await page.keyboard.press('Tab');
    const left = await page.evaluate(() => {
      const here = document.activeElement;
      globalThis.unreached.delete(here);
      if (here !== document.body && here !== document.documentElement) {
        const { outlineStyle, outlineWidth } = getComputedStyle(here);
        if (outlineStyle === 'none' || outlineWidth === '0px') throw new Error(`the focus is not visible on ${here.outerHTML}`);
      }
      return globalThis.unreached.size;
    });
    if (left === 0) return [];
  }
  return page.evaluate(() => [...globalThis.unreached].map((e) => e.outerHTML));
}
