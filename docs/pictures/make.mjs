// Makes the pictures of the README from the demo: a conversation on a phone, and the home page of the console.
//     MODULES=folder/node_modules CHROMIUM=/usr/bin/chromium node docs/pictures/make.mjs target/debug/dialarr
// The folder has the npm package playwright-core.
import { spawn } from "node:child_process";
import { statSync } from "node:fs";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const { MODULES, CHROMIUM } = process.env;
const { chromium } = createRequire(`${MODULES}/`)("playwright-core");
const folder = new URL(".", import.meta.url).pathname;
const MOST_BYTES = 150_000;

const demo = spawn(process.argv[2], ["demo"], { stdio: ["pipe", "pipe", "pipe"] });
const replies = createInterface({ input: demo.stdout })[Symbol.asyncIterator]();

/** Texts a line, and waits until a reply begins with these words. */
async function text(line, reply) {
  demo.stdin.write(`${line}\n`);
  for (;;) {
    const { value, done } = await replies.next();
    if (done) throw new Error(`the demo ended before it replied "${reply}"`);
    if (value.startsWith(`dialarr: ${reply}`)) return;
  }
}

let link;
for await (const line of createInterface({ input: demo.stderr })) {
  link = line.match(/sign in with (\S+)/)?.[1];
  if (link) break;
}
await text("add the lion king", "1. The Lion King");
await text("2", "Added The Lion King");
await text("remove heat", "Delete Heat");
await text("yes", "Deleted Heat");
await text("do we have coco?", "In the library: Coco");
await text("", "The Lion King (1994) is ready");

const browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox", "--disable-gpu"] });
const page = await browser.newPage({ viewport: { width: 390, height: 1_700 }, colorScheme: "light" });
await page.goto(link);
await page.getByRole("button", { name: "Sign in" }).click();
await page.goto(new URL("/conversations", link).href);
await page.locator(".conversation-link").first().click();
await page.locator(".bubble", { hasText: "ready to watch" }).waitFor();
await page.locator("#thread").screenshot({ path: `${folder}conversation.png` });
await page.setViewportSize({ width: 1280, height: 800 });
await page.goto(new URL("/", link).href);
await page.locator(".connection-strip").waitFor({ timeout: 90_000 });
await page.screenshot({ path: `${folder}console.png` });
await browser.close();
demo.stdin.end();
for (const name of ["conversation.png", "console.png"]) {
  const { size } = statSync(folder + name);
  if (size > MOST_BYTES) throw new Error(`${name} has ${size} bytes, which is more than ${MOST_BYTES}`);
}
