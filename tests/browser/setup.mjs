// Uses the setup assistant as a new operator would, from the link in the log to the last step. Started by assistant.rs,
// which serves the program and the fakes; ends with 1 and one line per fault, and prints the number of clicks.
import { SIZES, check, inspect, person, runSteps } from "./window.mjs";

const { LINK, PASSWORD, ADMIN, RADARR_URL, RADARR_KEY, SONARR_URL, SONARR_KEY, TWILIO_SID, TWILIO_TOKEN, NUMBER, PUBLIC_URL,
  WEBHOOK_URL } = process.env;
let clicks = 0;

/** Clicks the button, and waits for the page that follows. */
async function press(page, name) {
  clicks += 1;
  const loaded = page.waitForEvent("load");
  await page.getByRole("button", { name, exact: true }).click();
  await loaded;
}

/** Inspects a page at both sizes, light and dark. */
async function inspectAll(who, what) {
  for (const [size, viewport] of Object.entries(SIZES)) {
    for (const scheme of ["light", "dark"]) {
      await who.page.setViewportSize(viewport);
      await who.page.emulateMedia({ colorScheme: scheme });
      await inspect({ ...who, size, scheme, name: `${size} ${scheme}` }, `setup-${what}`);
    }
  }
}

async function fill(page, fields) {
  for (const [label, text] of Object.entries(fields)) await page.getByLabel(label, { exact: true }).fill(text);
}

async function setUp() {
  const who = await person("desktop", "light");
  const { page } = who;
  await page.goto(LINK);
  await press(page, "Sign in to Dialarr");
  await inspectAll(who, "password");
  await fill(page, { "Console password": PASSWORD });
  await press(page, "Save and continue");
  await inspectAll(who, "you");
  await fill(page, { "Your name": "Grace", "Your phone number": ADMIN, "Time zone": "UTC" });
  await press(page, "Save and continue");
  await inspectAll(who, "library");
  await fill(page, { "Sonarr URL": SONARR_URL, "Sonarr API key": SONARR_KEY, "Radarr URL": RADARR_URL, "Radarr API key": RADARR_KEY });
  await press(page, "Save and test");
  await page.getByText("Radarr: reachable, version").waitFor();
  await inspectAll(who, "library-tested");
  await press(page, "Save and continue");
  await page.getByRole("heading", { name: "Media servers" }).waitFor();
  await inspectAll(who, "media");
  await press(page, "Save and continue");
  await page.getByRole("heading", { name: "Discovery" }).waitFor();
  await inspectAll(who, "discovery");
  await press(page, "Save and continue");
  await inspectAll(who, "model");
  await page.getByLabel("Provider", { exact: true }).selectOption("none");
  await press(page, "Save and continue");
  await inspectAll(who, "texting");
  await page.getByRole("link", { name: "Your own phone" }).click();
  await page.getByText("reserve the address of the phone").waitFor();
  await inspectAll(who, "texting-own-phone");
  await page.getByRole("link", { name: "A Telegram bot" }).click();
  await page.getByText("BotFather answers with a token").waitFor();
  await inspectAll(who, "texting-telegram");
  await page.getByRole("link", { name: "A number at Twilio" }).click();
  await page.getByLabel("Account SID", { exact: true }).waitFor();
  await fill(page, { "Public URL": PUBLIC_URL, "Account SID": TWILIO_SID, "Auth token": TWILIO_TOKEN, "Phone number": NUMBER });
  await press(page, "Save and test");
  await page.getByText("belongs to the account and can send texts").waitFor();
  await inspectAll(who, "texting-tested");
  await press(page, "Save and continue");
  await fill(page, { "Webhook URL": WEBHOOK_URL });
  await press(page, "Save and show the changes");
  await page.getByRole("heading", { name: "Changes" }).waitFor();
  await inspectAll(who, "webhooks");
  await press(page, "Install webhooks");
  check((await page.locator(".checks .badge", { hasText: "done" }).count()) === 3, "not all webhooks are installed");
  await inspectAll(who, "webhooks-installed");
  clicks += 1;
  await page.getByRole("link", { name: "Continue" }).click();
  await page.getByText("Text ? to").waitFor();
  await inspectAll(who, "finish");
  await page.goto(new URL("/settings", page.url()).href);
  await inspectAll(who, "settings");
  const secrets = [PASSWORD, RADARR_KEY, SONARR_KEY, TWILIO_TOKEN];
  const html = await page.content();
  check(!secrets.some((secret) => html.includes(secret)), "the settings page shows a secret");
  console.log(`  ${clicks} clicks`);
}

await runSteps([["setup", setUp]]);
