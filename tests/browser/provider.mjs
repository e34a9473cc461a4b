// Sign-in at an OpenID provider: from the link to the overview, and the sign-out.
import assert from 'node:assert/strict';
import { browse, gateway, readable, wellMade } from './browser.mjs';

await browse({}, async (page, context) => {
  await page.goto(`${gateway}/`);
  assert.equal(new URL(page.url()).pathname, '/login');
  await wellMade(page);
  await readable(page);

  // A user who cancels the sign-in at the provider.
  await page.getByRole('link', { name: 'Sign in with kc' }).click();
  await page.locator('input[name=login]').waitFor();
  await page.getByText('[ Cancel ]').click();
  await page.getByRole('heading', { name: 'You are not signed in' }).waitFor();
  await wellMade(page);
  await readable(page);

  await page.getByRole('link', { name: 'Try again' }).click();
  await page.locator('input[name=login]').fill('alice');
  await page.locator('input[name=password]').fill('any');
  await page.locator('button[type=submit]').click();
  await page.getByText('Continue').click();
  await page.getByRole('link', { name: 'Alice Ångström' }).waitFor();
  assert.equal(page.url(), `${gateway}/admin`);
  await wellMade(page);
  await readable(page);
  const cookies = await context.cookies(gateway);
  const session = cookies.find((cookie) => cookie.name === 'penstock_session');
  assert.ok(session.httpOnly && session.sameSite === 'Lax');
  assert.ok(!cookies.some((cookie) => cookie.name.startsWith('penstock_login')));

  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByText('Yes, sign me out').click();
  await page.getByRole('heading', { name: 'You are signed out' }).waitFor();
  await page.goto(`${gateway}/`);
  assert.equal(new URL(page.url()).pathname, '/login');
});
