// Headless Chromium for the checks.

import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import puppeteer from 'puppeteer-core';

const BROWSERS = ['chromium', 'chromium-browser', 'google-chrome'];

export class UsageError extends Error {}

function findChromium() {
  const wanted = process.env.CHROMIUM ? [process.env.CHROMIUM] : BROWSERS;
  const folders = (process.env.PATH ?? '').split(delimiter);
  const paths = wanted.flatMap((name) => (name.includes('/') ? [name] : folders.map((folder) => join(folder, name))));
  const found = paths.find((path) => existsSync(path));
  if (found) return found;
  throw new UsageError(`no ${wanted.join(', ')} found: install it (Debian: apt-get install chromium) or set CHROMIUM to its path`);
}

export function launch() {
  // The sandbox needs privileges that containers lack; no host name may resolve, whatever slips past an interception.
  const args = ['--no-sandbox', '--disable-gpu', '--host-resolver-rules=MAP * ~NOTFOUND'];
  return puppeteer.launch({ executablePath: findChromium(), args });
}

// Polls from outside: the page's CSP may forbid the eval that puppeteer's own waiting needs.
export async function eventually(condition, milliseconds) {
  const end = Date.now() + milliseconds;
  while (!(await condition())) {
    if (Date.now() > end) return false;
    await new Promise((done) => setTimeout(done, 40));
  }
  return true;
}
