"""Ask the simulated Jellyfin with an independent client, and print what it answers.

usage: media_servers.py URL KEY
"""

import json
import sys

from jellyfin_apiclient_python import JellyfinClient


def main(url, key):
    client = JellyfinClient()
    client.config.app("contract", "1.0", "contract", "contract")
    client.config.data["auth.ssl"] = False
    client.config.data["auth.server"] = url
    client.config.data["auth.token"] = key
    client.config.data["auth.server.id"] = ""
    api = client.jellyfin
    users = {user["Name"]: user["Id"] for user in api.get_users()}
    client.config.data["auth.user_id"] = users["Ann"]
    titles = api.items(params={
        "recursive": True,
        "includeItemTypes": "Movie,Series",
        "fields": "ProviderIds",
        "userId": users["Ann"],
        "enableUserData": True,
    })["Items"]
    show = next(title for title in titles if title["Type"] == "Series")
    episodes = api.shows(f"/{show['Id']}/Episodes", {"userId": users["Ann"], "isMissing": False})["Items"]
    playing = [session["NowPlayingItem"]["Name"] for session in api.sessions() if session.get("NowPlayingItem")]
    print(json.dumps({
        "users": sorted(users),
        "titles": sorted(
            [title["Name"], title["ProviderIds"], title["UserData"]["Played"]] for title in titles
        ),
        "episodes": [[episode["ParentIndexNumber"], episode["IndexNumber"]] for episode in episodes],
        "playing": playing,
    }))


if __name__ == "__main__":
    main(*sys.argv[1:])
