// Acts as an agent with the official TypeScript SDK: its package for the current revision of the protocol, and the one for
// earlier revisions. Usage: node agents_client.mjs FOLDER_OF_MODULES URL KEY
import assert from "node:assert/strict";
import { createRequire } from "node:module";

const [modules, url, key] = process.argv.slice(2);
const require = createRequire(`${modules}/`);
const current = require("@modelcontextprotocol/client");
const earlier = {
    ...require("@modelcontextprotocol/sdk/client/index.js"),
    ...require("@modelcontextprotocol/sdk/client/streamableHttp.js"),
};

async function act({ Client, StreamableHTTPClientTransport }, revision) {
    const options = { versionNegotiation: { mode: "auto" } };
    const client = new Client({ name: "agents_client", version: "1.0" }, options);
    const requestInit = { headers: { Authorization: `Bearer ${key}` } };
    const transport = new StreamableHTTPClientTransport(new URL(url), { requestInit });
    await client.connect(transport);
    assert.equal(transport.protocolVersion, revision);
    assert.equal(client.getServerVersion().name, "dialarr");

    const { tools } = await client.listTools();
    const names = tools.map((tool) => tool.name);
    for (const name of ["find_in_library", "remove_media", "check_ticket"]) assert(names.includes(name), `${names}`);

    const { resources } = await client.listResources();
    assert(resources.some(({ uri }) => uri === "dialarr://library"));
    for (const { uri } of resources) {
        const { contents } = await client.readResource({ uri });
        assert(Array.isArray(JSON.parse(contents[0].text).results), uri);
    }

    const heat = await findHeat(client);
    const items = [{ type: "movie", id: heat.id }];
    const asked = await call(client, "remove_media", { items, delete_files: true });
    assert.equal(asked.state, "asked");
    const checked = await call(client, "check_ticket", { ticket: asked.ticket });
    assert.equal(checked.state, "asked");
    assert.deepEqual(await findHeat(client), heat);
    await client.close();
}

async function findHeat(client) {
    const { results } = await call(client, "find_in_library", { query: "heat" });
    assert.deepEqual(results.map(({ title }) => title), ["Heat"]);
    return results[0];
}

async function call(client, name, toolArguments) {
    const result = await client.callTool({ name, arguments: toolArguments });
    assert(!result.isError, JSON.stringify(result));
    // Clients that show only text get the same.
    assert.deepEqual(JSON.parse(result.content[0].text), result.structuredContent);
    return result.structuredContent;
}

await act(current, "2026-07-28");
await act(earlier, "2025-11-25");
