"""Act as an agent with the official Python SDK, in the current and the earlier revision of the protocol.

usage: agents_client.py URL KEY
"""

import asyncio
import json
import sys

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client


async def act(url, key, mode, revision):
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"}) as http:
        async with Client(streamable_http_client(url, http_client=http), mode=mode) as client:
            assert client.protocol_version == revision, client.protocol_version
            assert client.server_info.name == "dialarr", client.server_info
            tools = {tool.name for tool in (await client.list_tools()).tools}
            assert tools >= {"find_in_library", "remove_media", "check_ticket"}, tools

            resources = [str(resource.uri) for resource in (await client.list_resources()).resources]
            assert "dialarr://library" in resources, resources
            for uri in resources:
                content = json.loads((await client.read_resource(uri)).contents[0].text)
                assert "results" in content, (uri, content)

            heat = await find_heat(client)
            items = [{"type": "movie", "id": heat["id"]}]
            asked = await call(client, "remove_media", {"items": items, "delete_files": True})
            assert asked["state"] == "asked" and asked["ticket"], asked
            checked = await call(client, "check_ticket", {"ticket": asked["ticket"]})
            assert checked["state"] == "asked", checked
            assert await find_heat(client) == heat


async def find_heat(client):
    found = await call(client, "find_in_library", {"query": "heat"})
    assert [title["title"] for title in found["results"]] == ["Heat"], found
    return found["results"][0]


async def call(client, tool, arguments):
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result
    # Clients that show only text get the same.
    assert json.loads(result.content[0].text) == result.structured_content, result
    return result.structured_content


async def main(url, key):
    await act(url, key, "auto", "2026-07-28")
    await act(url, key, "legacy", "2025-11-25")


asyncio.run(main(*sys.argv[1:]))
