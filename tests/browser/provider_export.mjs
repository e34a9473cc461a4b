// The same steps, from a sample to a delivered export, for a user who signs in at an OpenID provider.
import { browse, gateway } from './browser.mjs';
import { derive, deliver, send } from './journey.mjs';

await browse({ acceptDownloads: true }, async (page) => {
  await page.goto(`${gateway}/admin/business-objects`);
  await page.getByRole('link', { name: 'Sign in with kc' }).click();
  await page.locator('input[name=login]').fill('alice');
  await page.locator('input[name=password]').fill('any');
  await page.locator('button[type=submit]').click();
  await page.getByText('Continue').click();
  await page.getByRole('heading', { name: 'Business Objects' }).waitFor();
  await derive(page, 'Pump', { script: true });
  await send(page, 'Pump');
  await deliver(page, 'Pump', { script: true });
});
