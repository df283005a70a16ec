// Opens every page of a console without data (FILLED is empty), or with 10,000 hostile rows (FILLED is "all", or "posters"
// for the pages with pictures), at both widths and in both schemes. Started by volume.rs.
import { SIZES, check, inspect, person, runSteps } from "./window.mjs";

const { BASE, PASSWORD, FILLED } = process.env;
const LISTS = ["/", "/conversations", "/requests", "/library", "/more", "/users", "/deliveries", "/spend",
  "/memory", "/health-checks", "/audit", "/settings", "/keys", "/api"];
const ROWS = ["/users/1", "/conversations/10000", "/conversations/1", "/conversations?q=alert", "/requests?show=waiting", "/requests?before=5000",
  "/library?page=300", "/library?sort=biggest", "/users?before=5000", "/users/9999", "/users/1/merge?from=2",
  "/deliveries?which=failed", "/audit?before=5000"];
const PICTURES = ["/library", "/requests"];
const PAGES = { "": LISTS, all: [...LISTS, ...ROWS], posters: PICTURES }[FILLED];
/** Words of each page that has no rows. */
const EMPTY = {
  "/": "No texts yet.",
  "/conversations": "No conversations.",
  "/requests": "No requests yet.",
  "/library": "No titles.",
  "/users": "No users yet.",
  "/deliveries": "No texts yet.",
  "/spend": "No spend yet.",
};

async function open(size, scheme) {
  const who = await person(size, scheme);
  const { page, name } = who;
  // A script that a row smuggles in would open a dialog, and a poster that is followed would leave this machine.
  page.on("dialog", async (dialog) => { check(false, `${name}: a dialog at ${page.url()}`); await dialog.dismiss(); });
  page.on("request", (request) => check(new URL(request.url()).origin === BASE, `${name}: a request to ${request.url()}`));
  // Every poster is hostile, so the placeholder is served instead.
  const pictures = [];
  page.on("response", (response) => new URL(response.url()).pathname.startsWith("/posters/") && pictures.push(response));
  await page.goto(`${BASE}/users`);
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.waitForURL(`${BASE}/users`);
  for (const path of PAGES) {
    const response = await page.goto(`${BASE}${path}`);
    check(response.status() === 200, `${name}: ${path} answers ${response.status()}`);
    const weight = (await response.body()).length;
    check(weight < 60_000, `${name}: ${path} weighs ${weight} bytes`);
    if (!FILLED && EMPTY[path]) check(await page.getByText(EMPTY[path]).first().isVisible(), `${name}: ${path} does not say "${EMPTY[path]}"`);
    await inspect(who, path === "/" ? "home" : path.slice(1).replace(/\W+/g, "-"));
  }
  check(!FILLED || pictures.length > 0, `${name}: no page asks for a poster`);
  const placeholder = await page.request.get(`${BASE}/posters/radarr/1`);
  check(!FILLED || !(await placeholder.text()).includes("script"), `${name}: a poster is served as it came`);
  for (const picture of pictures) {
    const isPlaceholder = ["content-type", "content-length"].every((header) => picture.headers()[header] === placeholder.headers()[header]);
    check(picture.status() === 200 && isPlaceholder, `${name}: ${picture.url()} is no placeholder`);
  }
  await who.close();
}

const steps = Object.keys(SIZES).flatMap((size) => ["light", "dark"].map((scheme) => [`${size}, ${scheme}`, () => open(size, scheme)]));
await runSteps(FILLED === "posters" ? steps.slice(0, 1) : steps);
