// Opens the documentation's site in headless Chromium and fails if its search does not find what it should.
//   npm ci && node site.mjs FOLDER
// Exit status: 0 if it works, 1 if not.

import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { eventually, launch } from './chromium.mjs';

const SEARCHES = { 'labels depend on the hospital': 'howto-hospital.html', 'Spark partitions': 'scale.html', 'only positives': 'positive-unlabelled.html' };

const folder = resolve(process.argv[2] ?? '');
const browser = await launch();
const failures = [];
for (const [words, expected] of Object.entries(SEARCHES)) {
  const page = await browser.newPage();
  page.on('pageerror', (error) => failures.push(`page error: ${error.message}`));
  const url = pathToFileURL(join(folder, 'index.html'));
  url.searchParams.set('search', words);
  await page.goto(url.href, { waitUntil: 'load' });
  const found = () => page.evaluate(() => [...document.querySelectorAll('#mdbook-searchresults a, #searchresults a')].map((link) => link.href));
  await eventually(async () => (await found()).length > 0, 10_000);
  const links = await found();
  const hit = links.some((link) => link.includes(expected));
  console.log(`${hit ? 'ok  ' : 'FAIL'} search for "${words}": ${links.length} results`);
  if (!hit) failures.push(`${expected} is not among the results for "${words}"`);
  await page.close();
}
await browser.close();
failures.forEach((failure) => console.log(`     ${failure}`));
process.exitCode = failures.length > 0 ? 1 : 0;
