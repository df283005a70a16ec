// Approves a group and changes it (PART is "approve"), or reads its conversation and blocks it ("read"). Started by
// rooms.rs.
import { SIZES, check, inspect, person, runSteps } from "./window.mjs";

const { BASE, PASSWORD, PART } = process.env;

async function signIn(size, scheme, path) {
  const who = await person(size, scheme);
  const { page, name } = who;
  page.on("dialog", async (dialog) => { check(false, `${name}: a dialog at ${page.url()}`); await dialog.dismiss(); });
  await page.goto(`${BASE}${path}`);
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.waitForURL(`${BASE}${path}`);
  return who;
}

/** Submits a form, and waits for the page that answers it. */
async function submit(page, button) {
  await Promise.all([page.waitForEvent("load"), button.click()]);
}

async function approve() {
  const who = await signIn("phone", "light", "/users");
  const { page } = who;
  check(await page.getByText("Waits for approval").isVisible(), "a group that waits is not shown as waiting");
  await inspect(who, "group-waits");
  await submit(page, page.locator("form[action^='/rooms/'][action$='/approve'] button"));
  const settings = page.locator("form[action^='/rooms/']").first();
  await settings.getByLabel("Answer").selectOption({ label: "Also what the model picks" });
  await settings.getByLabel("Remember what is said").uncheck();
  await settings.getByLabel("Weekly digest").fill("Friday 6pm");
  await submit(page, settings.getByRole("button", { name: "Save" }));
  await page.reload();
  check(await settings.getByLabel("Weekly digest").inputValue() === "friday 18", "the time of the digest is not kept");
  check(await settings.getByLabel("Answer").inputValue() === "ai", "the choice of answers is not kept");
  check(!(await settings.getByLabel("Remember what is said").isChecked()), "the group still remembers");
  await settings.getByLabel("Answer").selectOption({ label: "Mentions, replies and commands" });
  await settings.getByLabel("Remember what is said").check();
  await submit(page, settings.getByRole("button", { name: "Save" }));
  await inspect(who, "group-active");
  await who.close();
}

async function read(size, scheme) {
  const who = await signIn(size, scheme, "/users");
  const { page, name } = who;
  check(await page.getByText("Family <img").first().isVisible(), `${name}: the group has no name`);
  await inspect(who, "groups");
  await page.goto(`${BASE}/conversations`);
  await inspect(who, "conversations-with-group");
  await page.getByRole("link", { name: /Family/ }).first().click();
  for (const words of ["Bob", "Ann", "shall we watch <script>", "vote Dune, Heat", "1. Dune", "Heat wins with 2 of 2 votes."]) {
    check(await page.getByText(words).first().isVisible(), `${name}: the conversation of the group lacks "${words}"`);
  }
  await inspect(who, "group-conversation");
  await who.close();
}

async function block() {
  const who = await signIn("desktop", "light", "/users");
  const { page } = who;
  await submit(page, page.locator("form[action^='/rooms/'][action$='/block'] button"));
  check(await page.locator(".badge.bad", { hasText: "Blocked" }).first().isVisible(), "a blocked group is not shown as blocked");
  await inspect(who, "group-blocked");
  await who.close();
}

const windows = Object.keys(SIZES).flatMap((size) => ["light", "dark"].map((scheme) => [`${size}, ${scheme}`, () => read(size, scheme)]));
await runSteps(PART === "approve" ? [["approve", approve]] : [...windows, ["block", block]]);
