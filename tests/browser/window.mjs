// Browser windows of an operator, and the inspection of each page. Started by main.rs, which serves the pages.
import { readFileSync, mkdirSync } from "node:fs";
import { createRequire } from "node:module";

const { SHOTS, MODULES, CHROMIUM } = process.env;
const need = createRequire(`${MODULES}/`);
const { chromium } = need("playwright-core");
const axe = readFileSync(need.resolve("axe-core/axe.min.js"), "utf8");

export const SIZES = { phone: { width: 390, height: 844 }, desktop: { width: 1280, height: 800 } };
// Chromium looks for its maker's hosts otherwise.
const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync"];

export const faults = [];
export const check = (holds, what) => { if (!holds) faults.push(what); };
mkdirSync(SHOTS, { recursive: true });
export const browser = await chromium.launch({ executablePath: CHROMIUM, args: FLAGS });

/** A browser window of a person: `size`, `scheme`, with or without script. */
export async function person(size, scheme, javaScriptEnabled = true) {
  const context = await browser.newContext({
    viewport: SIZES[size], colorScheme: scheme, javaScriptEnabled, reducedMotion: "reduce", bypassCSP: false,
  });
  const page = await context.newPage();
  const name = `${size} ${scheme}${javaScriptEnabled ? "" : " without script"}`;
  // Complaints of the browser about what a step brings about on purpose.
  const expected = [];
  page.on("pageerror", (error) => faults.push(`${name}: script error at ${page.url()}: ${error.message}`));
  page.on("console", (line) => {
    if (line.type() === "error" && !expected.some((part) => line.text().includes(part))) faults.push(`${name}: ${page.url()}: ${line.text()}`);
  });
  return { page, name, size, scheme, expected, close: () => context.close() };
}

/** Nothing is wider than the window, and no serious accessibility fault is found. */
export async function inspect(who, what) {
  const { page, name } = who;
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  check(wide <= 0, `${name}: ${what} is ${wide} px wider than the window`);
  // The page's own policy forbids foreign script; the inspection is not part of the page.
  const { violations } = await page.evaluate(`${axe}; axe.run(document, { resultTypes: ["violations"] })`);
  for (const { id, impact, nodes } of violations) {
    if (impact === "serious" || impact === "critical") {
      faults.push(`${name}: ${what}: ${impact}: ${id}: ${nodes.map((node) => node.target.join(" ")).slice(0, 3).join(", ")}`);
    }
  }
  await page.screenshot({ path: `${SHOTS}/${what}-${who.size}-${who.scheme}.png`, fullPage: true });
}

/** Runs the steps one after the other, and ends with 1 and one line per fault. */
export async function runSteps(steps) {
  for (const [name, step] of steps) {
    try {
      await step();
      console.log(`  ${name}`);
    } catch (error) {
      faults.push(`${name}: ${error.message}`);
    }
  }
  await browser.close();
  faults.forEach((fault) => console.error(fault));
  process.exit(faults.length ? 1 : 0);
}
