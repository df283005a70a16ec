// Drives the console in a browser as its operator would: signs in, watches an answer come, approves a deletion.
// Started by main.rs, which serves the pages; ends with 1 and one line per fault.
import { check, faults, inspect, person, runSteps } from "./window.mjs";

const { BASE, SWITCHES, PASSWORD, STORY, RIDDLE } = process.env;
const PAGES = ["/", "/conversations", "/requests", "/library", "/make-room", "/more", "/nothing-here", "/users", "/viewer-accounts", "/users/1", "/users/2", "/users/1/merge?from=2", "/deliveries", "/spend", "/memory", "/health-checks",
  "/audit", "/settings", "/keys", "/api"];

async function signIn({ page }) {
  await page.goto(`${BASE}/users`);
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.waitForURL(`${BASE}/users`);
}

async function send(page, text) {
  await page.getByLabel(/^Text as /).fill(text);
  await page.getByRole("button", { name: "Text", exact: true }).click();
}

/** Bubbles of ours that say this. */
const said = (page, words) => page.locator(".bubble.outbound .message-text", { hasText: words });
/** What the last bubble of ours says. */
const lastAnswer = (page) => page.locator(".bubble.outbound .message-text").last().textContent({ timeout: 10_000 }).then((text) => text.trim());

async function watchStory(who) {
  const { page, name } = who;
  await send(page, "tell me a story");
  await said(page, "Once there was").first().waitFor();
  const seen = new Set();
  for (let look = 0; look < 12; look += 1) {
    seen.add(await lastAnswer(page));
    await page.waitForTimeout(150);
  }
  check(seen.size >= 4, `${name}: the answer was seen in ${seen.size} stages only`);
  for (const text of seen) check(STORY.startsWith(text), `${name}: a stage is no beginning of the story: ${text}`);
  await inspect(who, "while-streaming");
  await page.reload();
  const after = await lastAnswer(page);
  check(after.length > 0 && after.length < STORY.length, `${name}: the reload did not fall into the stream`);
  check(STORY.startsWith(after), `${name}: after the reload: ${after}`);
  await said(page, STORY.slice(-30)).waitFor({ timeout: 30_000 });
  const times = await said(page, "Once there was").count();
  check(times === 1, `${name}: the story stands ${times} times`);
  check((await lastAnswer(page)) === STORY, `${name}: the story is not whole: ${await lastAnswer(page)}`);
}

async function approveDeletion(who, title) {
  const { page } = who;
  await send(page, `remove ${title}`);
  await page.getByRole("button", { name: "Approve" }).waitFor();
  await inspect(who, "question");
  await page.getByRole("button", { name: "Approve" }).click();
  await said(page, `Deleted ${title}`).waitFor();
  await page.getByRole("button", { name: "Approve" }).waitFor({ state: "detached" });
  await inspect(who, "conversation");
}

/** An answer that is ended in the middle, and stays ended. */
async function cancelStory(who) {
  const { page, name } = who;
  await send(page, "tell me the story again");
  await page.locator(".bubble.partial", { hasText: "Once there was" }).waitFor();
  await page.getByRole("button", { name: "Cancel" }).click();
  await page.locator(".flash", { hasText: "The turn will finish before its next change" }).waitFor();
  await page.locator(".steps .badge", { hasText: "Canceled" }).waitFor();
  await page.locator(".bubble.partial").waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Cancel" }).waitFor({ state: "detached" });
  const times = await said(page, "Once there was").count();
  check(times === 1, `${name}: after the end of the second story ${times} are told`);
  await inspect(who, "canceled");
}

/** How much of the model's context the last step has used. */
async function readMeter({ page, name }) {
  const words = (await page.locator(".meter").textContent()).trim();
  check(words === "Context: the model read 1,180 tokens in its last step.", `${name}: the meter says: ${words}`);
  const { value, max } = await page.getByRole("progressbar").evaluate((bar) => ({ value: bar.value, max: bar.max }));
  check(value === 1180 && max === 8000, `${name}: the meter stands at ${value} of ${max}`);
}

/** A text that is longer than a text may be stays in its box, however it got there. */
async function typeTooMuch({ page, name, expected }) {
  expected.push("status of 422");
  const box = page.getByLabel(/^Text as /);
  const most = Number(await box.getAttribute("maxlength"));
  await box.evaluate((at, length) => { at.removeAttribute("maxlength"); at.value = "a".repeat(length); }, most + 1);
  const refused = page.waitForResponse((response) => response.request().method() === "POST");
  await page.getByRole("button", { name: "Text", exact: true }).click();
  check((await refused).status() === 422, `${name}: a text of ${most + 1} characters is answered ${(await refused).status()}`);
  await page.locator(".flash.warn", { hasText: "a text can have at most 1,600 characters" }).waitFor();
  check((await box.inputValue()).length === most + 1, `${name}: what was too long is gone from its box`);
}

/** Repeats a search until a text is found: texts are indexed every minute. */
async function findLater(page) {
  for (let tries = 0; tries < 45 && !(await page.locator("mark").count()); tries++) {
    await page.waitForTimeout(2_000);
    await page.reload();
  }
  await page.locator("mark").first().waitFor();
}

async function search(who) {
  const { page, name } = who;
  await page.goto(`${BASE}/conversations`);
  await page.getByLabel("Search messages").fill("knew the shelf");
  await page.getByRole("button", { name: "Search" }).click();
  await findLater(page);
  await inspect(who, "search");
  await page.locator(".conversation-link", { hasText: "shelf" }).first().click();
  await page.locator(".entry:target", { hasText: "knew the shelf" }).waitFor();
  await page.goto(`${BASE}/conversations?q=nobody+ever+said+this`);
  check(await page.getByText("No matches.").isVisible(), `${name}: what nobody said is found`);
}

/** A turn that failed is begun again, and its answer comes without a reload. */
async function resumeRiddle() {
  const who = await person("desktop", "light");
  const { page, name } = who;
  await signIn(who);
  await page.goto(`${BASE}/conversations?q=riddle`);
  await findLater(page);
  await page.locator(".conversation-link").first().click();
  await page.getByRole("link", { name: "Newest texts" }).click();
  const resume = page.getByRole("button", { name: "Resume" });
  await resume.waitFor({ timeout: 90_000 });
  await inspect(who, "failed");
  await resume.click();
  await page.locator(".flash", { hasText: "Resumed from the failed step" }).waitFor();
  await said(page, RIDDLE).waitFor();
  await resume.waitFor({ state: "detached" });
  check((await said(page, RIDDLE).count()) === 1, `${name}: the answer does not stand once`);
  await who.close();
}

/** Signed in, watching, deciding: everything that an operator does with script. */
async function useConsole(size, scheme, title) {
  const who = await person(size, scheme);
  await signIn(who);
  await who.page.goto(`${BASE}/`);
  await who.page.getByRole("button", { name: "New test conversation" }).click();
  await who.page.waitForURL(/\/conversations\/\d+/);
  await watchStory(who);
  await readMeter(who);
  await cancelStory(who);
  await approveDeletion(who, title);
  await typeTooMuch(who);
  await search(who);
  await lookAround(who);
  await who.close();
}

async function lookAround(who) {
  who.expected.push("status of 404");
  for (const path of PAGES) {
    const response = await who.page.goto(`${BASE}${path}`);
    check(response.status() === (path === "/nothing-here" ? 404 : 200), `${who.name}: ${path} answers ${response.status()}`);
    await inspect(who, path === "/" ? "home" : path.slice(1).replace(/\W/g, "-"));
  }
}

async function useWithoutScript() {
  const who = await person("phone", "light", false);
  const { page, name } = who;
  await signIn(who);
  await page.goto(`${BASE}/`);
  await page.getByRole("button", { name: "New test conversation" }).click();
  await send(page, "status");
  for (let look = 0; look < 20; look += 1) {
    if (await page.locator(".bubble.outbound").count()) break;
    await page.waitForTimeout(200);
    await page.reload();
  }
  check((await page.locator(".bubble.outbound").count()) > 0, `${name}: no answer after reloads`);
  await who.close();
}

/** The line about a lost connection comes when the stream does not, and goes with it. */
async function watchWithoutConnection() {
  const who = await person("phone", "light");
  const { page } = who;
  who.expected.push("net::ERR_FAILED");
  await signIn(who);
  await page.goto(`${BASE}/conversations`);
  await page.route("**/live?**", (route) => route.abort());
  await page.locator(".conversation-link").first().click();
  await page.locator("#lost").waitFor({ timeout: 15_000 });
  await page.unroute("**/live?**");
  await page.locator("#lost").waitFor({ state: "hidden", timeout: 15_000 });
  await who.close();
}

/** Whose session ends while they watch is led to the sign-in, and from there back. */
async function watchAfterSignOut() {
  const who = await person("phone", "light");
  const { page } = who;
  who.expected.push("net::ERR_FAILED", "MIME type");
  await signIn(who);
  await page.goto(`${BASE}/conversations`);
  await page.route("**/live?**", (route) => route.abort());
  await page.locator(".conversation-link").first().click();
  await page.locator("#lost").waitFor({ timeout: 15_000 });
  const watched = new URL(page.url()).pathname;
  await page.context().clearCookies();
  await page.unroute("**/live?**");
  // The browser keeps the fragment of the page in the URL of the sign-in.
  await page.waitForURL((url) => url.pathname + url.search === `/sign-in?next=${encodeURIComponent(watched)}`, { timeout: 15_000 });
  await who.close();
}

async function useKeyboard() {
  const who = await person("desktop", "light");
  const { page } = who;
  await page.goto(`${BASE}/sign-in`);
  await inspect(who, "sign-in");
  await signIn(who);
  await page.goto(`${BASE}/`);
  await page.keyboard.press("Tab");
  const first = await page.evaluate(() => document.activeElement.textContent.trim());
  check(first === "Skip to content", `the first stop of the Tab key is "${first}"`);
  await page.keyboard.press("Enter");
  const at = await page.evaluate(() => document.activeElement.id);
  check(at === "main", `the link to the content leads to "${at}"`);
  await who.close();
}

const CONNECTIONS = { sonarr: "Sonarr", radarr: "Radarr", phone: "Twilio", webhook: "Public address", model: "Model", database: "Database" };

/** Breaks a connection of the program, or repairs it. */
async function turn(connection, state) {
  const { ok, status } = await fetch(`${SWITCHES}/${connection}/${state}`);
  check(ok, `the switch of ${connection} answers ${status}`);
}

/** What the open home page says about a connection, without a reload. */
const stateOf = (page, label, badge) => page.locator(".connection-strip li")
  .filter({ has: page.locator("strong", { hasText: new RegExp(`^${label}$`) }) }).locator(".badge", { hasText: badge }).waitFor();

/** Each connection is broken and repaired while the home page is open; then all of them together. */
async function breakConnections(size, scheme) {
  const who = await person(size, scheme);
  const { page, name } = who;
  await signIn(who);
  await turn("radarr", "working");
  await page.goto(`${BASE}/`);
  for (const [connection, label] of Object.entries(CONNECTIONS)) {
    await stateOf(page, label, "Works");
    await turn(connection, "broken");
    await stateOf(page, label, "Failure");
    await page.getByRole("button", { name: `Test ${label}` }).or(page.getByRole("link", { name: `Checks of ${label}` })).waitFor();
    check(!(await page.getByText("All clear.").isVisible()), `${name}: all is clear without ${label}`);
    await inspect(who, `home-without-${connection}`);
    await turn(connection, "working");
    await stateOf(page, label, "Works");
  }
  for (const connection of Object.keys(CONNECTIONS)) await turn(connection, "broken");
  for (const label of Object.values(CONNECTIONS)) await stateOf(page, label, "Failure");
  await inspect(who, "home-without-connections");
  for (const connection of Object.keys(CONNECTIONS)) await turn(connection, "working");
  for (const label of Object.values(CONNECTIONS)) await stateOf(page, label, "Works");
  await who.close();
}

const steps = [
  ["keyboard", useKeyboard],
  ["phone, light", () => useConsole("phone", "light", "Heat")],
  ["desktop, dark", () => useConsole("desktop", "dark", "Alien")],
  ["phone, dark", async () => { const who = await person("phone", "dark"); await signIn(who); await lookAround(who); await who.close(); }],
  ["desktop, light", async () => { const who = await person("desktop", "light"); await signIn(who); await lookAround(who); await who.close(); }],
  ["without script", useWithoutScript],
  ["lost connection", watchWithoutConnection],
  ["ended session", watchAfterSignOut],
  ["failed turn", resumeRiddle],
  ["broken connections, phone, light", () => breakConnections("phone", "light")],
  ["broken connections, phone, dark", () => breakConnections("phone", "dark")],
  ["broken connections, desktop, light", () => breakConnections("desktop", "light")],
  ["broken connections, desktop, dark", () => breakConnections("desktop", "dark")],
];
await runSteps(steps);
