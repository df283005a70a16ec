// Changes settings on the page "Settings", again and again, while assistant.rs sends texts. Ends with 1 and one line per
// fault, and prints "started" once the members may text.
import { check, inspect, person, runSteps } from "./window.mjs";

const { BASE, PASSWORD, MEMBERS } = process.env;
const ROUNDS = 6;

/** Saves a group of settings, and checks that the page confirms it. */
async function save(page, group, change) {
  await change();
  const loaded = page.waitForEvent("load");
  await page.getByRole("button", { name: `Save ${group}`, exact: true }).click();
  await loaded;
  const flash = (await page.locator(".flash").first().textContent()).trim();
  check(flash === "Saved.", `${group}: ${flash}`);
}

async function changeSettings() {
  const who = await person("desktop", "light");
  const { page } = who;
  await page.goto(`${BASE}/settings`);
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.waitForURL(`${BASE}/settings`);
  const field = (label) => page.getByLabel(label, { exact: true });
  await save(page, "People", () => field("Members").fill(MEMBERS));
  await save(page, "Limits", () => field("Texts per number").fill("off"));
  console.log("started");
  for (let round = 0; round < ROUNDS; round += 1) {
    const isEven = round % 2 === 0;
    await save(page, "Conversations", async () => {
      await field("Confirmation codes").selectOption({ label: isEven ? "Every deletion" : "Several or large titles (default)" });
      await field("Spanish").setChecked(isEven);
      await field("Pause before an answer").fill(isEven ? "100" : "200");
    });
    await save(page, "Texting", () => field("Posters as pictures").selectOption(isEven ? "off" : ""));
    await save(page, "Sonarr and Radarr", () => field("Radarr URL").evaluate((input) => {
      input.value = input.value.endsWith("/") ? input.value.slice(0, -1) : `${input.value}/`;
    }));
    await save(page, "Limits", () => field("Retention").fill(String(100 + round)));
  }
  await inspect(who, "settings-changed");
}

await runSteps([["settings", changeSettings]]);
