// The sign-in form of built-in accounts: with only the keyboard, without script, and on a phone in dark mode.
import assert from 'node:assert/strict';
import { devices } from 'playwright-core';
import { browse, counted, gateway, readable, wellMade } from './browser.mjs';

const password = process.env.PASSWORD;
const telephone = devices['iPhone SE'];
const { defaultBrowserType: _, ...small } = telephone;

for (const options of [{}, { javaScriptEnabled: false }, { ...small, colorScheme: 'dark' }]) {
  await browse(options, async (page) => {
    await page.goto(`${gateway}/swagger-ui/../`);
    assert.equal(new URL(page.url()).pathname, '/login');
    if (options.javaScriptEnabled !== false) {
      await wellMade(page);
      await readable(page);
      await counted(page.locator('[name=email]:focus'), 1);
    }
    await page.getByText('initial-admin-password').waitFor();
    // Uses the labels, and then only the keyboard.
    await page.getByLabel('Email').fill('admin');
    await page.keyboard.press('Tab');
    await page.keyboard.type('a wrong password');
    await page.keyboard.press('Enter');
    await page.getByRole('alert').waitFor();
    assert.equal(await page.getByRole('alert').textContent(), 'The user name or the password is wrong.');
    assert.equal(await page.getByLabel('Email').inputValue(), 'admin');
    assert.equal(await page.getByLabel('Password').inputValue(), '');
    if (options.javaScriptEnabled !== false) await readable(page);
    await page.getByLabel('Password').fill(password);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    assert.equal(page.url(), `${gateway}/admin`);
    if (options.javaScriptEnabled !== false) {
      await wellMade(page);
      await readable(page);
    }
    // On a small screen the navigation is behind the menu button.
    if (options.isMobile) await page.getByRole('button', { name: 'Menu' }).click();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('heading', { name: 'You are signed out' }).waitFor();
    await page.goto(`${gateway}/api/v1/limits`);
    assert.equal(new URL(page.url()).pathname, '/login');
  });
}
