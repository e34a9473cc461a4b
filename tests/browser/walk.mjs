// Every page for every role: in every look, with the keyboard, and refused where it is not for the role.
import assert from 'node:assert/strict';
import { accessible, api, everyLook, furnish, people, reachable, signIn } from './admin.mjs';
import { browse, gateway } from './browser.mjs';
import { identify, pages } from './pages.mjs';

await furnish();
const { ask, close } = await api(people.Admin);
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
        // A key of somebody else is not there at all.
        assert.ok([403, 404].includes(answer.status()), `${name} answered ${answer.status()}`);
        await page.getByRole('heading', { level: 1 }).waitFor();
        assert.match(answer.headers()['content-type'], /^text\/html/, name);
        continue;
      }
      assert.equal(answer.status(), 200, name);
      assert.equal(await page.getByRole('heading', { level: 1 }).count(), 1, name);
      await page.getByRole('heading', { level: 1, name: typeof heading === 'function' ? heading(ids) : heading }).waitFor();
      // An Admin sees all there is; others less of the same.
      if (role !== 'Admin') continue;
      await everyLook(page, name);
      await reachable(page, name);
      await page.setViewportSize({ width: 360, height: 800 });
      await reachable(page, `${name}, narrow`);
    }
    await page.goto(`${gateway}/admin/nothing`);
    await page.getByRole('heading', { name: 'Not found' }).waitFor();
    if (role === 'User') await everyLook(page, 'fault');

    // What the navigation offers, the role may see; the menu opens and closes by the keyboard.
    await page.setViewportSize({ width: 360, height: 800 });
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
      assert.ok(!offered.includes(path), `${role} is offered ${path}`);
    }
  });
}

// The pages to sign in on, as a stranger sees them.
await browse({}, async (page) => {
  await page.goto(`${gateway}/admin/users`);
  assert.equal(new URL(page.url()).pathname, '/login');
  await everyLook(page, 'sign in');
  await page.goto(`${gateway}/signed-out`);
  await everyLook(page, 'signed out');
});
