// Starts npm's telegram-test-api. Usage: node telegram_server.mjs FOLDER_OF_MODULES PORT
import { createRequire } from "node:module";

const [modules, port] = process.argv.slice(2);
const TelegramServer = createRequire(`${modules}/`)("telegram-test-api");
await new TelegramServer({ host: "127.0.0.1", port: Number(port), storeTimeout: 600 }).start();
