// Opens every page with every role: in every width and color scheme, with the keyboard, and refused if the role is
// not sufficient.
import assert from 'node:assert/strict';
import { accessible, api, assess, everyLook, furnish, people, propose, reachable, signIn } from './admin.mjs';
import { browse, gateway, resize } from './browser.mjs';
import { identify, pages } from './pages.mjs';

await furnish();
const { ask, close } = await api(people.Admin);
await assess(ask);
await ask('POST', '/api/v1/views', { name: 'Fast pumps', businessObject: 'Pump', filters: [{ field: 'flow', test: 'after', value: '10' }], shared: true });
// Texts without a space, as long as they may be, make no page wider than the screen.
await ask('POST', '/api/v1/views', { name: 'Long', businessObject: 'Pump', filters: [{ field: 'name', test: 'eq', value: 'W'.repeat(900) }], shared: true });
await ask('POST', '/api/v1/api-keys', { name: 'k'.repeat(200), role: 'User' });
await propose(ask);
const ids = await identify(ask);
await close();

const roles = ['User', 'Contributor', 'Admin'];
for (const role of roles) {
  await browse({}, async (page) => {
    await signIn(page, people[role]);
    for (const { path, heading, least } of pages) {
      const address = typeof path === 'function' ? path(ids) : path;
      const name = `${role} ${address.replaceAll(/[0-9a-f-]{36}/g, 'id')}`;
      const answer = await page.goto(`${gateway}${address}`);
      if (roles.indexOf(role) < roles.indexOf(least)) {
        // For other users, an API key does not exist: 404 instead of 403.
        assert.ok([403, 404].includes(answer.status()), `${name} returned ${answer.status()}`);
        await page.getByRole('heading', { level: 1 }).waitFor();
        assert.match(answer.headers()['content-type'], /^text\/html/, name);
        continue;
      }
      assert.equal(answer.status(), 200, name);
      assert.equal(await page.getByRole('heading', { level: 1 }).count(), 1, name);
      await page.getByRole('heading', { level: 1, name: typeof heading === 'function' ? heading(ids) : heading }).waitFor();
      // An Admin sees every element of a page and others see fewer, so the Admin's pages are enough.
      if (role !== 'Admin') continue;
      await everyLook(page, name);
      await reachable(page, name);
      await resize(page, 360, 800);
      await reachable(page, `${name}, narrow`);
    }
    await page.goto(`${gateway}/admin/nothing`);
    await page.getByRole('heading', { name: 'Not found' }).waitFor();
    if (role === 'User') await everyLook(page, 'error page');

    // The navigation has only pages that the role may see. The keyboard opens and closes the menu.
    await resize(page, 360, 800);
    await page.goto(`${gateway}/admin`);
    await page.getByRole('button', { name: 'Menu' }).press('Enter');
    const links = page.getByRole('navigation', { name: 'Main' }).locator('li a');
    await links.first().waitFor();
    await accessible(page, `${role} menu`);
    if (process.env.SCREENSHOTS) await page.screenshot({ path: `${process.env.SCREENSHOTS}/${role}-menu.png` });
    const offered = await links.evaluateAll((all) => all.map((link) => link.getAttribute('href')));
    await page.keyboard.press('Escape');
    await links.first().waitFor({ state: 'hidden' });
    for (const path of pages.filter(({ least }) => roles.indexOf(role) < roles.indexOf(least)).map(({ path }) => path)) {
      assert.ok(!offered.includes(path), `the navigation of ${role} has ${path}`);
    }
  });
}

// The pages of signing in and out, as unauthenticated users see them.
await browse({}, async (page) => {
  await page.goto(`${gateway}/admin/users`);
  assert.equal(new URL(page.url()).pathname, '/login');
  await everyLook(page, 'sign in');
  await page.goto(`${gateway}/signed-out`);
  await everyLook(page, 'signed out');
});
