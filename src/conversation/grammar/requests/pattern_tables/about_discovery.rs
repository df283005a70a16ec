//! Patterns of requests for something to watch, by who is in it, its years, where it streams, and similar filters.

use crate::conversation::grammar::requests::form::{DiscoveryForm, Form, Section};

pub const SECTIONS: &[Section] = &[
    Section {
        form: Form::Discovery(DiscoveryForm::Like),
        patterns: &[
            "[recommend|suggest|find|give|show|got|any|anything|something|what else is|are there] [me|us] [any|some|more|a|other] [$good] [$adjective] (<noun>|something|anything|stuff|more|one|else|smth) $like <text> [to watch] $likefilters",
            "$propose [a|an|some|any|another] [$good] [$adjective] (<noun>|$something) $like <text> [to watch] $likefilters",
            "(if i|i|we) (liked|loved|enjoyed|like|love|just watched|just saw|really liked|really loved) <text> what (should|could|else should|do|else) (i|we|you) (watch|see|recommend|suggest) [next]",
            "(what|which) [<noun>] (is|are) [there] (like|similar to) <text> $likefilters",
            "$whats [there] similar to <text> $likefilters",
            "more like <text> $likefilters",
            "(similar to|along the lines of|in the style of) <text> $likefilters",
        ],
    },
    Section {
        form: Form::Discovery(DiscoveryForm::Filtered),
        patterns: &[
            "[$propose] [$some] [$good] [$adjective] [$adjective] [$adjective] (<noun> [(or|and) <noun>]|$something|<genre>) $filters",
            "(what|which) [$good] [$adjective] [$adjective] [<noun>|stuff|things|else] (should|can|could|do|would|shall|to) [i|we|you] (watch|see|recommend|suggest|put on|stream|binge|start) [next|then] $filters",
            "(what|which) [other] [$good] [$adjective] [$adjective] <noun> (is|are|do|does) [there|they] [$good|available|streaming|playing|showing] $filter $filters",
            "(what|which) [$good] [$adjective] [<noun>] (is|are|can i find|can we find) [there] [$good] [to watch] (on|in) <provider> $filters",
            "(what|which) [$good] [$adjective] [<noun>] (does|do|has) <provider> (have|got) $filters",
            "$whats [there|thats|that is] [$good|available|streaming|playing|showing|worth watching|out] [to watch] (on|in|from) <provider> [$rightnow] $filters",
            "(new|latest|recent|good|best|the latest|the best|just added|recently added) [releases|stuff|additions|arrivals|titles|things] (on|to|from) <provider> [$rightnow] $filters",
            "<provider> (recommendations|suggestions|ideas|picks|recommendation|suggestion)",
            "(what|which) [else|other] [<noun>|stuff|things] (has|have) <artist> [else] (been in|starred in|acted in|appeared in|played in|directed|made|written|done|produced) $filters",
            "(what|which) [else|other] [<noun>|stuff|things] (did|does) <artist> [else] (star in|act in|play in|appear in|direct|make|write|do) $filters",
            "(what|which) [other] <noun> (is|was|are) <artist> (in|known for) $filters",
            "what (else|other) (is|was) <artist> in",
            "(what|whats) [is] <artist> known for",
            "[show|show me|list|give me] (<artist> filmography|[the] filmography of <artist>)",
        ],
    },
    Section {
        form: Form::Discovery(DiscoveryForm::Themed),
        patterns: &[
            "[$propose] (a|an|some|any|another|the best|more) [$good] <theme> [and|but] [<theme>] <noun> $occasion",
            "[$good|best|top|the best] <theme> [and|but] [<theme>] <nouns> $occasion",
            "[$propose] (something|anything|smth|sth) [$good] [thats|that is] <theme> [and|but] [<theme>] $occasion",
            "[$propose] [$some] [$good] [<theme>] <noun> [thats|that is|that are|theyre] [<theme>] (about|with|involving|based on|inspired by) <theme> $occasion",
            "[$propose] [$some] [$good] [<theme>] <noun> [thats|that is|that are|which are] <theme> $occasion",
        ],
    },
    Section {
        form: Form::Discovery(DiscoveryForm::Trending),
        patterns: &[
            "(trending|most popular|top 10) [$rightnow]",
            "$whats [all] (trending|popular|hot|big|most popular|being watched|everyone talking about|everybody talking about) [<noun>] [$rightnow] $filters",
            "(what|which) [<noun>] (is|are) (everybody|everyone) [else] [all] (watching|streaming|bingeing|binging|talking about|into) $rightnow",
            "(what|which) [<noun>] (is|are) (people|the world|other people|most people|folks|everyone else|everybody else) [all] (watching|streaming|bingeing|binging|talking about|into) [$rightnow]",
            "[$propose] [the|some|any|all the] [$good] [<theme>] [<provider>] $trending [<theme>] (<noun>|stuff|things|titles) [$rightnow] $filters",
            "(what|which) [$good] [<theme>] <noun> (is|are) $trending [$rightnow] $filters",
            "[anything|something] ($trending|top 10) on <provider> [$rightnow]",
            "[$propose] (something|anything|stuff) [thats|that is] $trending [$rightnow] $filters",
            "$whats (everybody|everyone) [else] [all] (watching|streaming|bingeing|binging|talking about|into) $rightnow",
        ],
    },
    Section {
        form: Form::Discovery(DiscoveryForm::Missing),
        patterns: &[
            "(recommend|suggest|pick|give|find|show|choose|name) [me|us] (a|an|some|any|something|anything) [$good] [<theme>] [<noun>] $notours",
            "(something|anything|some <nouns>|a <noun>) [$good] [<theme>] $notours",
            "(what|which) [$good] [<theme>] [<noun>] (should|can|could|shall|to) [i|we] (watch|see) $notours",
        ],
    },
];

/// Parts that these patterns share.
pub const MACROS: &[(&str, &str)] = &[
    (
        "propose",
        "(recommend|suggest|pick|give|find|show|choose|name|get|list|see|browse|watch|stream|search|know|know of) [me|us]|(search|look|looking|searching|im looking|i am looking|were looking) for|are there|is there|what about|how about|what are|whats|what is|(in the mood for|feel like|feeling like|fancy) [watching]|(i|we|im|were) [am|are|really|just] (in the mood for|feel like|feel like watching|fancy|fancy watching|feeling like|want|want to watch|want to see|wanna watch|wanna see|need|would like|would like to watch|looking for)|(id|wed) (like|love) [to (watch|see)]|(want|need|wanna) [to] [watch|see]",
    ),
    (
        "some",
        "a|an|some|any|more|other|another|all|best|top|(the|some of the|your) (best|top)|a few|a couple of|all the",
    ),
    (
        "something",
        "(something|anything|smth|sth|stuff|things|titles) [$good|else] [to watch|worth watching|on]",
    ),
    ("adjective", "<theme>|<decade>|<provider>"),
    ("like", "like|similar to|along the lines of|in the style of"),
    ("filters", "[[and|but] $filter] [[and|but] $filter] [[and|but] $filter] [[and|but] $filter]"),
    (
        "filter",
        "(with|w|starring|featuring|staring|ft|feat) [the (actor|actress)|actor|actress] <artist> [in it|in them]|[directed|written|made|created|produced] by [the director|director] <artist>|(that|which) (star|stars|starring|have|has|features|feature) <artist> [in it|in them]|(that|where|which) <artist> (is|was|plays|acts|stars|starred|appears|directed|made|wrote) [in]|(on|in|at) <provider>|[thats|that is|that are|which are|which is|theyre|just|only|really] <theme>|(about|with|involving) <theme>|$limit|$notours|to (watch|stream|see|binge)|out there",
    ),
    (
        "limit",
        "[that|which|thats] [is|are|was|were|came out|come out|made|released|filmed|came] <years>|[thats|that is|that are|which are|which is|theyre|with a runtime] $below <length> [long]|[thats|that is|that are] <length> (or less|or shorter|or under|max|tops|at most)|[thats|that is|that are|which are|are] rated $atleast <rating> $higher|rated <rating> $higher|(with|has|have|having|that has|that have) [a|an] [imdb|tmdb|user|average] (rating|ratings|score) [of] $atleast <rating> $higher|(with|has|have|having|that has|that have) [a|an] [imdb|tmdb|user|average] (rating|ratings|score) [of] <rating> $higher|(with|has|have|having|that has|that have) [a] $atleast [a|an] <rating> [star|stars] (rating|ratings|score)|$atleast <rating> (on|at) (imdb|tmdb|rotten tomatoes)",
    ),
    ("likefilters", "[$likefilter] [$likefilter] [$likefilter]"),
    (
        "likefilter",
        "[but] (starring|featuring|but with) <artist>|[but] (directed|written) by <artist>|[but] on <provider>|(but|only|just|thats|that is|that are) [also|more|really|a bit|a bit more] [a|an] <theme> [<noun>]|but (a|as a) <noun>|[but] $limit|[but] $notours",
    ),
    (
        "below",
        "under|below|less than|shorter than|shorter then|less then|fewer than|within|at most|max|maximum|up to|no (longer|more) than|not (longer|more) than|not over|in under|in less than",
    ),
    ("atleast", "over|above|at least|more than|better than|higher than|of at least|of over|minimum|min"),
    (
        "higher",
        "[out of 10|or (higher|more|above|better|up|over)|and (up|above|higher|over|more)|plus|stars|on imdb|on tmdb]",
    ),
    ("trending", "trending|popular|most popular|most watched|hottest|hyped|buzziest"),
    ("rightnow", "right now|now|these days|at the moment|nowadays|currently|at present|atm|<period>"),
    (
        "notours",
        "[that|which] (we|i) (dont|do not|didnt) [already|yet|currently] (have|own|got) [yet|already|here]|[that|which] (we|i) (havent|have not) [already|yet] got [yet]|[that|which] weve not got [yet]|[thats|that is|that are|which are] not [already] (in|on|from) [the|our|my] (library|server|collection|plex|jellyfin)",
    ),
    (
        "occasion",
        "[for (date night|movie night|game night|family night|the kids|kids|tonight|a date|us|me)] [to watch]",
    ),
];
