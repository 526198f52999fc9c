// Opens HTML reports in headless Chromium and fails if one of them does not work as intended.
//   npm ci && node check.mjs PAGE.html [PAGE2.html ...] [--screenshots DIR]
// Exit status: 0 if all pages pass, 1 if something failed (and is listed), 2 if the check could not be started.

import { mkdirSync, readFileSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { UsageError, eventually, launch } from './chromium.mjs';

const USAGE = 'usage: node check.mjs PAGE.html [PAGE2.html ...] [--screenshots DIR]';
const VIEWPORTS = [{ width: 1280, height: 900 }, { width: 390, height: 844 }];
const SCHEMES = ['light', 'dark'];
const AXE_TAGS = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa'];
const TAB_PRESSES = 5;
const MARKS_PER_FIGURE = 8;
const SMALLEST_PDF = 10_000;
const MOST_PAGES = 4;
const LARGEST_PAGE = 2_000_000;

function lookUp(report, path) {
  return path.split('.').reduce((node, key) => (node != null && Object.hasOwn(node, key) ? node[key] : undefined), report);
}

// Returns { bound, number, unit, percent }, where unit is the value of one unit in the last digit shown.
function parseShown(text) {
  const plain = text.replace(/[\s,±]/gu, '').replace(/\u2212/gu, '-');
  const match = /^(<?)([+-]?\d*(?:\.(\d+))?)(?:e([+-]?\d+))?(%?)$/iu.exec(plain);
  if (!match || !/\d/u.test(match[2])) return null;
  const [, bound, digits, decimals = '', exponent = '0', percent] = match;
  return { bound, number: Number(`${digits}e${exponent}`), unit: 10 ** (exponent - decimals.length), percent: percent !== '' };
}

// A percent sign may be in the text, or in a heading that is not visible here.
function shows(shown, value) {
  return showsScaled(shown, 100 * value) || (!shown.percent && showsScaled(shown, value));
}

function showsScaled({ bound, number, unit }, value) {
  // "<0.001" is a bound, not a rounding: half a unit around it would reject nearly every value.
  if (bound) return value < number;
  // Decimal ties may not be exact in binary, so leave room for the last bits.
  return Math.abs(value - number) <= unit / 2 + 4 * Number.EPSILON * Math.abs(value);
}

function numberFailure(report, { path, over, value, text }) {
  const [found, whole] = [lookUp(report, path), over ? lookUp(report, over) : 1];
  if (typeof found !== 'number' || typeof whole !== 'number') return `${path}: the JSON has no number there`;
  const expected = over ? found / whole : found;
  if (value === null || value.trim() === '' || Number(value) !== expected) {
    return `${path}: data-value is ${JSON.stringify(value)}, the JSON has ${expected}`;
  }
  const shown = parseShown(text);
  if (!shown) return `${path}: the text ${JSON.stringify(text)} is not a number`;
  return shows(shown, expected) ? null : `${path}: the text ${JSON.stringify(text)} is not a rounding of ${expected}`;
}

async function checkNumbers(page) {
  const { json, shown } = await page.evaluate(() => ({
    json: document.querySelector('script#report-data[type="application/json"]')?.textContent ?? null,
    shown: [...document.querySelectorAll('[data-path]')].map((element) => ({
      path: element.dataset.path,
      over: element.dataset.over,
      value: element.getAttribute('data-value'),
      text: element.innerText || element.textContent, // SVG text has no innerText
    })),
  }));
  if (json === null) return ['there is no <script type="application/json" id="report-data">'];
  const report = JSON.parse(json);
  const failures = shown.map((item) => numberFailure(report, item)).filter(Boolean);
  if (!shown.some(({ path }) => /(^|\.)phi\./u.test(path))) failures.push('no element has a data-path under "phi."');
  return failures;
}

// Numbers in sentences, too: each is a rounding of a number of the JSON, or stands in one of its texts.
async function checkSentences(page) {
  const { json, figures, texts } = await page.evaluate(() => {
    const linked = (node) => node.parentElement.closest('[data-path], svg, script, style, pre, .legend, table.settings');
    const walker = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT);
    const found = [];
    while (walker.nextNode()) if (!linked(walker.currentNode)) found.push(walker.currentNode.textContent);
    const [json, figures] = ['report', 'figures'].map((name) => document.querySelector(`script#${name}-data`)?.textContent ?? '{}');
    return { json, figures, texts: found };
  });
  const [numbers, words] = [[], []];
  const collect = (node) => {
    if (typeof node === 'number') numbers.push(node);
    else if (typeof node === 'string') words.push(node);
    else if (node && typeof node === 'object') Object.values(node).forEach(collect);
  };
  const report = JSON.parse(json);
  collect(report);
  collect(JSON.parse(figures)); // phi by epoch is kept there alone
  const counts = report.labelled_per_class ?? [];
  numbers.push(...counts.map((count) => count / report.n_labelled), report.effective_sample_size / report.n_labelled);
  const all = words.join(' ');
  const unknown = new Set();
  for (const text of texts) {
    for (const [shown] of text.matchAll(/(?<![\w.])[+-]?\d+\.\d+%?/gu)) {
      const parsed = parseShown(shown.replace(/^\+/u, ''));
      if (!numbers.some((value) => shows(parsed, value)) && !all.includes(shown)) unknown.add(shown);
    }
  }
  return [...unknown].map((shown) => `${shown} is in a sentence, and nowhere in the JSON`);
}

// A reader who knows no statistics finds the answers without scrolling.
function checkFirstScreen(page) {
  return page.evaluate(() => {
    if (!document.querySelector('[data-answer]')) return []; // not the page of a run
    scrollTo(0, 0);
    const has = (selector) => document.querySelector(selector) !== null;
    const wanted = ['headline', 'prevalence', 'verdict', 'next', ...(has('[data-answer="interval"]') ? ['interval'] : [])];
    const problem = (name) => {
      const element = document.querySelector(`[data-answer="${name}"]`);
      if (!element) return `there is no answer ${name}`;
      const { top, bottom, left, right } = (element.querySelector('.short') ?? element).getBoundingClientRect();
      const seen = top >= 0 && bottom <= innerHeight && left >= 0 && right <= innerWidth;
      return seen ? null : `the answer ${name} stands at ${Math.round(top)} to ${Math.round(bottom)} px, below the first screen of ${innerHeight} px`;
    };
    return wanted.map(problem).filter(Boolean);
  });
}

function checkBackticks(page) {
  // Names of classes and columns may have them.
  return page.evaluate(() => {
    const texts = [...document.querySelectorAll('main :is(h1, h2, h3, p, li)')].map((element) => element.innerText);
    const named = (json) => Object.entries(json ?? {}).some(([key, value]) => (['classes', 'column', 'group', 'given', 'name'].includes(key) && JSON.stringify(value).includes('`'))
      || (value && typeof value === 'object' && named(value)));
    const own = named(JSON.parse(document.querySelector('script#report-data').textContent));
    return !own && texts.some((text) => text.includes('`')) ? ['there are raw backticks'] : [];
  });
}

// Short words and numbers stand on one line: a column that breaks them is too narrow.
function checkBrokenWords(page) {
  return page.evaluate(() => {
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const range = document.createRange();
    const broken = new Set();
    // Names of classes and columns may be longer than any line, have marks at which nothing breaks, or turn the direction of the text.
    const strings = (json) => (typeof json === 'string' ? [json] : Object.values(json ?? {}).flatMap(strings));
    const names = strings(JSON.parse(document.querySelector('script#report-data').textContent));
    const unusual = names.filter((name) => !name.startsWith('data:') && /\S{20}|[<>"{|=\u202a-\u202e]/u.test(name)).join(' ');
    while (walker.nextNode()) {
      const node = walker.currentNode;
      if (node.parentElement.closest('script, style, svg, pre, .hidden') || !node.parentElement.checkVisibility()) continue;
      for (const { 0: word, index } of node.textContent.matchAll(/[A-Za-z]{2,14}|\d[\d.]*%?/gu)) {
        range.setStart(node, index);
        range.setEnd(node, index + word.length);
        const tops = new Set([...range.getClientRects()].map(({ top }) => Math.round(top)));
        if (tops.size > 1 && !unusual.includes(word)) broken.add(word);
      }
    }
    return broken.size > 0 ? [`broken over two lines: ${[...broken].slice(0, 8).join(', ')}`] : [];
  });
}

async function checkSidewaysScroll(page) {
  const [content, window_] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  return content > window_ + 1 ? [`the content is ${content} px wide in a window of ${window_} px`] : [];
}

// Tables fit a phone: what has to be scrolled sideways is not read.
function checkTables(page) {
  return page.evaluate(() => [...document.querySelectorAll('.scroll')]
    .filter((table) => table.checkVisibility() && table.scrollWidth > table.clientWidth + 1)
    .map((table) => `the table "${table.getAttribute('aria-label')}" is ${table.scrollWidth} px wide in ${table.clientWidth} px`));
}

function checkFigures(page) {
  return page.evaluate(() => {
    const textOf = (ids) => ids.split(/\s+/u).map((id) => document.getElementById(id)?.textContent ?? '').join('').trim();
    const hidden = (element) => element.closest('[aria-hidden="true"]') !== null;
    // An <svg> may be aria-hidden inside the role="img" that labels it: its parts then need no labels.
    const named = (svg) => {
      const image = svg.closest('[role="img"]');
      if (!image || hidden(image)) return false;
      return Boolean(image.getAttribute('aria-label')?.trim() || textOf(image.getAttribute('aria-labelledby') ?? ''));
    };
    const drawn = (svg) => svg.querySelector('path, circle, rect, line, polyline, polygon, ellipse, text') !== null
      && svg.getBoundingClientRect().width > 0 && svg.getBoundingClientRect().height > 0;
    const failuresOf = (figure) => {
      const svgs = [...figure.querySelectorAll('.chart svg')];
      return [
        !svgs.some((svg) => drawn(svg) && named(svg)) && 'has no <svg> in .chart that is drawn, role="img" and named',
        svgs.some((svg) => !hidden(svg) && !named(svg)) && 'has an <svg> that is neither named as role="img" nor aria-hidden',
        !figure.querySelector('details.data table td') && 'has no <table> with cells in details.data',
      ].filter(Boolean).map((problem) => `figure ${JSON.stringify(figure.dataset.figure)} ${problem}`);
    };
    const figures = [...document.querySelectorAll('figure[data-figure]')];
    return figures.length > 0 ? figures.flatMap(failuresOf) : ['there is no figure[data-figure]'];
  });
}

async function checkAccessibility(page, axeSource) {
  // Colours in the middle of a transition would be judged as if they were the page's final colours.
  await page.evaluate(() => document.getAnimations()
    .filter((animation) => Number.isFinite(animation.effect?.getComputedTiming().endTime))
    .forEach((animation) => animation.finish()));
  // Evaluated through the debugger instead of being added as a <script>, so that a strict CSP does not block it.
  await page.evaluate(axeSource);
  return page.evaluate(async (tags) => {
    const result = await window.axe.run(document, { runOnly: { type: 'tag', values: tags }, preload: false });
    const selectors = (nodes) => nodes.slice(0, 3).map((node) => node.target.join(' ')).join('; ');
    return result.violations.filter(({ impact }) => impact === 'serious' || impact === 'critical')
      .map(({ id, impact, help, nodes }) => `${id} (${impact}): ${help}: ${nodes.length} of them: ${selectors(nodes)}`);
  }, AXE_TAGS);
}

// Leaves the details open.
async function summaryProblem(summary) {
  const isOpen = () => summary.evaluate((element) => element.parentElement.open);
  if (await isOpen()) await summary.click();
  if (await isOpen()) return 'a click does not close it';
  await summary.click();
  if (!(await isOpen())) return 'a click does not open it';
  const seen = await summary.evaluate((element) => [...element.parentElement.querySelectorAll('table')].every((table) => (
    table.checkVisibility({ visibilityProperty: true, opacityProperty: true }) && table.getBoundingClientRect().height > 0)));
  return seen ? null : 'it opens but its table is not visible';
}

async function checkSummaries(page) {
  const summaries = await page.$$('details > summary');
  if (summaries.length === 0) return ['there is no <summary> to click'];
  const failures = [];
  for (const [index, summary] of summaries.entries()) {
    const problem = await summaryProblem(summary).catch((error) => error.message);
    if (problem) failures.push(`summary ${index + 1}: ${problem}`);
  }
  return failures;
}

async function checkThemeButton(page) {
  const theme = () => page.evaluate(() => document.documentElement.dataset.theme);
  const before = await theme();
  await page.click('button#theme');
  return (await theme()) === before ? [`a click leaves data-theme at ${JSON.stringify(before)}`] : [];
}

// Null if the focused element is visibly focused, otherwise what is wrong with it.
function focusProblem(element) {
  const { left, right, top, bottom, width, height } = element.getBoundingClientRect();
  const onScreen = width > 1 && height > 1 && right > 0 && bottom > 0 && left < innerWidth && top < innerHeight;
  if (!onScreen || !element.checkVisibility({ visibilityProperty: true, opacityProperty: true })) return 'is not visible';
  const style = getComputedStyle(element);
  const outlined = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0;
  return outlined || style.boxShadow !== 'none' ? null : 'has no visible focus indicator';
}

async function checkKeyboard(page) {
  const failures = [];
  let previous = await page.evaluateHandle(() => document.body);
  for (let press = 1; press <= TAB_PRESSES; press += 1) {
    await page.keyboard.press('Tab');
    const current = await page.evaluateHandle(() => document.activeElement ?? document.body);
    const moved = await page.evaluate((now, then) => now !== then && now !== document.body, current, previous);
    previous = current;
    let problem = moved ? null : 'has the focus, which did not move';
    // A page that scrolls smoothly needs a moment to bring the element into view.
    if (moved) await eventually(async () => (problem = await current.evaluate(focusProblem)) === null, 1000);
    const name = await current.evaluate((element) => element.outerHTML.slice(0, 60));
    if (problem) failures.push(`Tab ${press}: ${name} ${problem}`);
  }
  return failures;
}

function tooltipShown(figure) {
  const tips = [...figure.querySelectorAll('svg [aria-label="tip"]')];
  const boxes = [...document.querySelectorAll('.tooltip')];
  return tips.some((tip) => tip.childElementCount > 0) || boxes.some((box) => box.textContent.trim() !== ''
    && box.getBoundingClientRect().width > 0 && box.checkVisibility({ visibilityProperty: true, opacityProperty: true }));
}

// Scrolls one of `count` marks, spread over the figure, into view and returns its centre.
function markCentre(figure, index, count) {
  const marks = [...figure.querySelectorAll('.chart svg :is(circle, rect, path)')]
    .filter((mark) => !mark.closest('defs, clipPath, [aria-label*="axis"], [aria-label*="grid"], [aria-label="tip"]'));
  if (index >= marks.length) return null;
  const mark = marks[marks.length <= count ? index : Math.floor((index * marks.length) / count)];
  mark.scrollIntoView({ block: 'center', inline: 'center', behavior: 'instant' });
  const { x, y, width, height } = mark.getBoundingClientRect();
  return { x: x + width / 2, y: y + height / 2 };
}

async function hoverShowsTooltip(page, figure) {
  let shown = false;
  for (let index = 0; index < MARKS_PER_FIGURE; index += 1) {
    const centre = await figure.evaluate(markCentre, index, MARKS_PER_FIGURE);
    if (!centre) break;
    await page.mouse.move(centre.x, centre.y);
    // Once one has been shown, the others are hovered only to see whether their text injects code.
    shown = (await eventually(() => figure.evaluate(tooltipShown), shown ? 0 : 400)) || shown;
  }
  await page.mouse.move(0, 0);
  return shown;
}

async function checkTooltips(page) {
  const figures = await page.$$('figure[data-figure]');
  if (figures.length === 0) return ['there is no figure to hover over'];
  if (await figures[0].evaluate(tooltipShown)) return ['a tooltip is shown before anything is hovered'];
  const shown = [];
  for (const figure of figures) shown.push(await hoverShowsTooltip(page, figure));
  return shown[0] ? [] : ['hovering over marks of the first figure shows no tooltip'];
}

async function checkPrint(page) {
  const pdf = Buffer.from(await page.pdf({ preferCSSPageSize: true }));
  const pages = pdf.toString('latin1').match(/\/Type\s*\/Page\b/gu)?.length ?? 0;
  const classes = await page.evaluate(() => JSON.parse(document.querySelector('script#report-data').textContent).classes?.length ?? 0);
  // A hundred classes need their room.
  const most = classes > 40 ? 8 : MOST_PAGES;
  return [
    pdf.length <= SMALLEST_PDF && `the PDF has only ${pdf.length} bytes`,
    (pages === 0 || pages > most) && `the PDF has ${pages} pages`,
  ].filter(Boolean);
}

function checkInjection(page) {
  return page.evaluate(() => (window.__injected === undefined ? [] : ['text of the report ran as code: window.__injected is set']));
}

async function watchPage(page, ownUrl, failures) {
  const add = (text) => failures.push(text);
  page.on('pageerror', (error) => add(`page error: ${error?.message ?? error}`));
  page.on('console', (message) => {
    if (['error', 'warn', 'warning'].includes(message.type())) add(`console ${message.type()}: ${message.text()}`);
  });
  page.on('dialog', (dialog) => { // would otherwise block the page forever
    add(`dialog: ${dialog.message()}`);
    dialog.dismiss().catch(() => {});
  });
  await page.setRequestInterception(true);
  page.on('request', (request) => {
    const url = request.url();
    const allowed = url.split('#')[0] === ownUrl || /^(data|blob):/u.test(url);
    if (!allowed) add(`network: request for ${url.slice(0, 200)}`);
    (allowed ? request.continue() : request.abort()).catch(() => {});
  });
  // Request interception does not see WebSockets.
  const session = await page.createCDPSession();
  session.on('Network.webSocketCreated', ({ url }) => add(`network: WebSocket to ${url}`));
  await session.send('Network.enable');
}

function checkSize(file) {
  const { size } = statSync(file);
  return size < LARGEST_PAGE ? [] : [`the page has ${size} bytes`];
}

async function runChecks(page, axeSource, failures) {
  const steps = [
    // The order matters: the first Tab must come before anything is clicked or scrolled into view, from where Chromium 148 goes on;
    // tables must be open for axe.
    ['first screen', checkFirstScreen], ['keyboard', checkKeyboard], ['broken words', checkBrokenWords],
    ['sideways scroll', checkSidewaysScroll], ['tables', checkTables], ['figures', checkFigures], ['tooltip', checkTooltips],
    ['details', checkSummaries], ['sideways scroll, details open', checkSidewaysScroll], ['broken words, details open', checkBrokenWords],
    ['numbers', checkNumbers], ['sentences', checkSentences], ['backticks', checkBackticks], ['axe', checkAccessibility],
    ['theme', checkThemeButton], ['axe, theme switched', checkAccessibility],
    ['print', checkPrint], ['injection', checkInjection],
  ];
  for (const [name, check] of steps) {
    const found = await check(page, axeSource).catch((error) => [`could not be checked: ${error.message}`]);
    failures.push(...found.map((text) => `${name}: ${text}`));
  }
}

async function checkVariant(browser, axeSource, { file, viewport, scheme, screenshot }) {
  const failures = [];
  const url = pathToFileURL(file).href;
  // A separate context, so that a theme kept in localStorage does not carry over to the next variant.
  const context = await browser.createBrowserContext();
  try {
    const page = await context.newPage();
    await watchPage(page, url, failures);
    await page.setViewport(viewport);
    await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }]);
    await page.goto(url, { waitUntil: 'load' });
    await eventually(() => page.evaluate(() => document.querySelector('figure[data-figure] .chart svg') !== null), 3000);
    if (screenshot) await page.screenshot({ path: screenshot, fullPage: true });
    failures.push(...checkSize(file));
    await runChecks(page, axeSource, failures);
  } catch (error) {
    failures.push(`the page could not be opened: ${error.message}`);
  } finally {
    await context.close();
  }
  return [...new Set(failures)];
}

function readArguments(words) {
  const at = words.indexOf('--screenshots');
  const folder = at < 0 ? null : words[at + 1];
  const pages = at < 0 ? words : words.toSpliced(at, 2);
  if (pages.length === 0 || folder === undefined || pages.some((page) => page.startsWith('--'))) throw new UsageError(USAGE);
  const names = pages.map((page) => basename(page, '.html'));
  if (folder && new Set(names).size < names.length) throw new UsageError("pages of the same name would overwrite each other's screenshots");
  if (folder) mkdirSync(folder, { recursive: true });
  return pages.flatMap((page, index) => VIEWPORTS.flatMap((viewport) => SCHEMES.map((scheme) => {
    const label = `${names[index]}-${viewport.width}-${scheme}`;
    return { file: resolve(page), viewport, scheme, label, screenshot: folder && join(folder, `${label}.png`) };
  })));
}

async function main() {
  const variants = readArguments(process.argv.slice(2));
  const axeSource = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
  const browser = await launch();
  let failed = 0;
  for (const variant of variants) {
    const failures = await checkVariant(browser, axeSource, variant);
    console.log(`${failures.length === 0 ? 'ok  ' : 'FAIL'} ${variant.label}`);
    for (const failure of failures) console.log(`     ${failure}`);
    failed += failures.length > 0 ? 1 : 0;
  }
  await browser.close();
  console.log(`${variants.length - failed} of ${variants.length} passed`);
  process.exitCode = failed > 0 ? 1 : 0;
}

main().catch((error) => {
  console.error(error instanceof UsageError ? error.message : error);
  process.exit(2); // also ends a browser that is still open
});
