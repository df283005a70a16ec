"""Ask a simulated server with an independent client, and print what it answers.

usage: media_servers.py jellyfin|plex|tautulli URL KEY
"""

import json
import sys


def ask_jellyfin(url, key):
    from jellyfin_apiclient_python import JellyfinClient

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
    return {
        "users": sorted(users),
        "titles": sorted(
            [title["Name"], title["ProviderIds"], title["UserData"]["Played"]] for title in titles
        ),
        "episodes": [[episode["ParentIndexNumber"], episode["IndexNumber"]] for episode in episodes],
        "playing": playing,
    }


def ask_plex(url, key):
    from plexapi.server import PlexServer

    server = PlexServer(url, key)
    sections = {section.title: section for section in server.library.sections()}
    show = sections["Shows"].all()[0]
    return {
        "server": [server.friendlyName, server.version],
        "sections": {title: [section.type, section.locations] for title, section in sections.items()},
        "movies": [
            [movie.title, movie.year, [guid.id for guid in movie.guids], movie.media[0].parts[0].file]
            for movie in sections["Movies"].all()
        ],
        "show": [show.title, [guid.id for guid in show.guids], show.leafCount],
        "episodes": [[episode.parentIndex, episode.index, episode.grandparentTitle] for episode in show.episodes()],
        "playing": [
            [session.usernames, session.title, session.players[0].state]
            for session in server.sessions() if session.type in ("movie", "episode")
        ],
        "accounts": {account.id: account.name for account in server.systemAccounts()},
        "history": [[play.title, play.accountID, play.viewedAt.timestamp()] for play in server.history()],
    }


def ask_tautulli(url, key):
    from tautulli import ObjectAPI, RawAPI

    # The client warns of versions before 2.18.
    api, raw = (client(url, key, verify=False) for client in (ObjectAPI, RawAPI))
    users = {user["friendly_name"]: user for user in raw.users}
    history = api.get_history(grouping=True, user_id=users["Bob"]["user_id"], order_column="date",
                              order_direction="desc", length=10)
    sent = []
    get = raw._session.get
    raw._session.get = lambda **request: sent.append(request["params"]) or get(**request)
    # Each of these properties sends a request.
    _ = raw.tautulli_info, raw.users
    raw.get_history(grouping=True, include_activity=True, user_id=1, rating_key=2, grandparent_rating_key=3,
                    guid="plex://movie/4", search="five", order_column="date", order_direction="desc", start=6, length=7)
    return {
        "version": raw.tautulli_info["tautulli_version"],
        "users": {name: [user["is_active"], user["keep_history"]] for name, user in users.items()},
        "history": [
            [play.full_title, play.media_type, play.percent_complete, play.watched_status, play.stopped]
            for play in history.data
        ],
        "rows": [history.recordsFiltered, history.recordsTotal],
        "requests": {request["cmd"]: request for request in sent},
    }


if __name__ == "__main__":
    asked = {"jellyfin": ask_jellyfin, "plex": ask_plex, "tautulli": ask_tautulli}
    print(json.dumps(asked[sys.argv[1]](*sys.argv[2:])))
