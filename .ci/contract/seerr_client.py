"""Ask a simulated Seerr with an independent client, and print what it answers.

usage: seerr_client.py URL KEY USER
"""

import json
import sys

import seerr


def ask(url, key, user):
    owner = seerr.ApiClient(seerr.Configuration(host=f"{url}/api/v1", api_key={"apiKey": key}))
    found = json.loads(seerr.SearchApi(owner).get_search_without_preload_content(query="heat").data)
    trending = json.loads(seerr.SearchApi(owner).get_discover_trending_without_preload_content().data)
    movies = seerr.SearchApi(owner).get_discover_movies(genre="80", watch_providers="8", watch_region="US")
    person = seerr.PersonApi(owner).get_person_combined_credits(person_id=380)
    # Read as plain JSON, because the description nests the streaming services once too often.
    show = json.loads(seerr.TvApi(owner).get_tv_by_tv_id_without_preload_content(tv_id=70523).data)
    users = seerr.UsersApi(owner).get_user(take=10, skip=0)
    person_client = seerr.ApiClient(seerr.Configuration(host=f"{url}/api/v1", api_key={"apiKey": key}))
    person_client.set_default_header("X-API-User", user)
    requests = seerr.RequestApi(person_client)
    asked = requests.create_request(seerr.CreateRequestRequest(mediaType="movie", mediaId=949))
    quota = seerr.UsersApi(person_client).get_user_quota(user_id=int(user))
    decided = seerr.RequestApi(owner).create_request_by_status(request_id=str(int(asked.id)), status="approve")
    listed = seerr.RequestApi(owner).get_request(take=20, requested_by=int(user))
    return {
        "found": [item.get("title") or item.get("name") for item in found["results"]],
        "trending": [item.get("title") or item.get("name") for item in trending["results"]],
        "movies": [movie.title for movie in movies.results],
        "credits": sorted((entry.title or entry.name) for entry in person.cast),
        "tvdb": show["externalIds"]["tvdbId"],
        "users": sorted(entry.additional_properties["displayName"] for entry in users.results),
        "asked": asked.status,
        "used": quota.movie.used,
        "decided": decided.status,
        "listed": [int(entry.media.tmdb_id) for entry in listed.results],
    }


print(json.dumps(ask(*sys.argv[1:])))
