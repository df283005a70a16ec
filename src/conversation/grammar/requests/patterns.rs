//! Table of the request patterns: one section for each form of a request.

use super::form::Section;
use super::pattern_tables::{about_discovery, about_program, about_titles, about_tonight, about_watching};

/// Returns all sections. Of two equally good matches, the first one counts.
pub fn sections() -> impl Iterator<Item = &'static Section> {
    let all = about_titles::SECTIONS.iter().chain(about_watching::SECTIONS).chain(about_tonight::SECTIONS);
    all.chain(about_program::SECTIONS).chain(about_discovery::SECTIONS)
}

/// Returns the parts that several patterns share, each with its name.
pub fn macros() -> Vec<(&'static str, &'static str)> {
    [MACROS, about_discovery::MACROS, about_tonight::MACROS].concat()
}

/// Parts that patterns of several tables share.
const MACROS: &[(&str, &str)] = &[
    (
        "get",
        "add|ad|get|upload|obtain|load|load up|source|rip|download|grab|fetch|dowload|snag|queue|queue up|pick up|put on|throw on|stick on|track down|dig up|hunt down|acquire|snatch|pull|pull down|line up",
    ),
    ("getting", "adding|getting|downloading|grabbing|fetching|queueing|queuing"),
    (
        "want",
        "want|need|wanna have|would like|d like|would love|id like|id love|wed like|wed love|fancy|could use",
    ),
    ("we", "we|i|you|u|ya|they|yall"),
    ("us", "me|us"),
    ("have", "have|got|have got|own|hav"),
    (
        "dowehave",
        "(do|have) (you|we|they) (guys|all|lot|folks|people) (have|got)|doe we have|does we have|do whe have|do we have|do you have|do i have|do we got|do you got|do u have|do we own|do we already have|do you already have|do i already have|have we got|have you got|have i got|have we already got|did we get|did you get|you got|we got|yall got|got|do we currently have|are we having|dowe have|have we",
    ),
    ("is", "is|are|has|was|did|hows|how is"),
    ("whats", "whats|what is|what are|wats|what|wat is|what s"),
    (
        "when",
        "when|whens|when is|when are|when will|when does|when do|when did|what day is|what day does|what date is|what time is|what time does",
    ),
    (
        "plex",
        "plex|jellyfin|emby|the server|the library|server|library|here|there|our library|my library|our server|the system|the collection|our collection|file|disk|radarr|sonarr|the plex|plex server|the plex server",
    ),
    (
        "ready",
        "ready|done|finished|available|there|here|in|added|downloaded|up|in the library|complete|completed|good to go|watchable|imported|on plex|on jellyfin|on the server|ready to watch|available to watch|out|on here|in there",
    ),
    (
        "remove",
        "remove|delete|get rid of|erase|trash|ditch|dump|scrap|bin|nuke|wipe|purge|toss|drop|take down|throw out|throw away|clear out|kick out|chuck out|rm|del|uninstall|kill off|lose|take off|delete off|remove off",
    ),
    ("removing", "removing|deleting|getting rid of|erasing|trashing|ditching"),
    (
        "tellme",
        "(tell|text|notify|ping|message|alert|inform|msg|buzz|remind|warn|update|shout|call|contact) [me|us|him|her]|let (me|us|him|her) know|lemme know|lemme kno|lmk|(give|send|drop|shoot|throw) (me|us|him|her) (a|an) (shout|shout out|text|ping|message|heads up|nudge|buzz|call|ring|notification|alert|note|line|update|yell|holler|bell)|hit me up|(i|we|id|wed) (want|wanna|would like|need|like|d like|wish) [to] (know|be told|be notified|hear|find out|be alerted|get notified)|want to know|wanna know|make sure i know|holler|let know",
    ),
    ("whenever", "when|once|as soon as|the moment|the second|whenever|after|if|the minute|soon as|whn|wen"),
    (
        "groceries",
        "milk|eggs|bread|pizza|beer|coffee|groceries|food|dinner|lunch|breakfast|gas|money|cash|sandwich|drink|water|wine|snacks|popcorn|taxi|cab|uber|toilet paper|butter|cheese|sugar|flour|chicken|diapers|nappies|tea|juice|ice cream|cake|bananas|apples|dog food|cat food|takeout|takeaway|laundry|mail|kids|dog|car",
    ),
    (
        "back",
        "back|on|out|airing|returning|coming back|coming out|coming|back on|starting|released|due|due out|due back|premiering|available|dropping|coming on|gonna be out|going to be out|going to be released|set to return|set to come out|being released|released on digital|next on",
    ),
    (
        "comeback",
        "come back|come out|start|air|return|premiere|drop|release|begin|be back|be out|be released|be on|get released|be airing|get here|come on|resume|arrive|launch|be available|continue",
    ),
    ("kind", "movie|film|movies|films|show|shows|series|tv show|tv shows|tv series"),
    ("movies", "movie|movies|film|films"),
    ("shows", "show|shows|series|tv show|tv shows|tv series|tv"),
    (
        "good",
        "good|great|nice|decent|new|fun|fresh|really good|cool|solid|interesting|random|well rated|highly rated",
    ),
    ("titles", "<kind>|stuff|things|titles"),
    ("lately", "lately|recently|<period>"),
    ("seerr", "seerr|overseerr|jellyseerr"),
    ("mediaserver", "jellyfin|plex|the media server|emby"),
    ("havent", "havent|havnt|have not|have never|havent yet|never"),
    (
        "unseen",
        "[that|which] (i|we) $havent (seen|watched) [yet|before]|[that|which] (ive|weve) (not|never) (seen|watched) [yet|before]|(thats|that is|thats still) (unwatched|unseen|new to me|new to us)|(unwatched|unseen) [by me|by us]",
    ),
    (
        "unfinished",
        "[and|but] (not|never|havent|have not|didnt|not yet|without|i havent|i didnt) (finished|finish|completed|finishing) [it|them]",
    ),
    (
        "ours",
        "(from|out of) [the|our|my] (library|collection|server|plex|jellyfin|media server)|in (the|our|my) (library|collection)|(from|out of) (what|the stuff|the things|those) (we|i|you) [already] $have|[that|which] (we|i) [already] (have|own|have got) [here|already]|[that|which] weve [already] got",
    ),
    ("fromlibrary", "$ours [(and|but)] [$unseen]|$unseen [(and|but)] [$ours]"),
];

/// Words before a request that say nothing about it.
pub const LEADING: &[&str] = &[
    "show me|tell me|hi|hey|hello|hiya|yo|hey there|hi there|heya|hello there|ok|okay|so|um|uh|well|right|alright|oh|ah|also|and|then|just|now|actually|sorry|btw|morning|evening|good morning|good evening|good afternoon|good day|howdy|dialarr|bot|robot|hey dialarr|hi dialarr|mate|dude|man|bro|buddy|guys|please|kindly|quick question|question|quick one|one more thing|maybe|perhaps|real quick|listen|look|hmm|hm|ooh|ugh|wait|oops|whoops|woops|hang on|hold on|argh|damn|crap|oh no|cool|great|nice|thanks|thank you|yes|yeah|yep|sure|lol|haha|omg|next|first|finally|lastly|anyway|anyways|again|and also|oh and|ps|by the way|[is there] any chance|is there a chance|what are the chances|if not|otherwise|if so|if we dont|if we dont have it|if its not (there|here)|else|(free up|make|clear|clear up|get back) [some|more] (space|room)|(we|i|were|im) (need|are out of|am out of|out of|running out of|are running out of|low on) [some|more|disk] (space|room)|did (they|he|she|anyone|someone) say|do we know|does anyone know|have they said|any word on|is it known",
    "(can|could|would|will|cld|wld) (you|u|ya|we|i|someone|somebody) [please|possibly|maybe|also|just|kindly|quickly|pls]",
    "(would|do) you mind|would you be able to|are you able to|is it possible to|is it possible for you to|would it be possible to|any chance (you|we|i) (can|could)|is there any way (to|you can|you could|we can|we could)|any way (to|you can|we can)|any chance of|can i get you to|could i get you to|might you|do you think you (can|could)",
    "i (want|need|would like) you to|id like you to|i want to|i wanna|i would like to|id like to|i need to|we want to|we wanna|we would like to|wed like to|we should|we need to|id love to|wed love to|lets|let us|feel free to|go ahead and|make sure to|try to|remember to|dont forget to|be a dear and|do me a favor and|do us a favor and|when you get a chance|when you have a minute|if you can|if possible|if you could|go and|you can|you should|time to|im trying to|i am trying to|think you (can|could)|i was hoping (to|you could|we could)|ill|i will|whenever you can",
    "(tell me|let me know|do you know|you know|any idea|im wondering|i was wondering|just wondering|i wonder|wondering|check|check and see|see|can you see|can you check|curious|im curious|not sure|i want to know|i wanna know|i would like to know|id like to know|look and see|find out) [if|whether]",
];

/// Words after a request that say nothing about it.
pub const TRAILING: &[&str] = &[
    "please|thanks|please and thanks|please and thank you|thank you|thank you so much|thanks so much|thanks a lot|many thanks|thank u|cheers|ta|kthx|thanks in advance|appreciate it|much appreciated|mate|dude|man|bro|buddy|guys|lol|haha|hehe|lmao|x|xx|xxx|xo|xoxo|ok|okay|k|asap|tho|though|anyway|as well|right now|real quick|quickly|if you can|if you could|if possible|if thats ok|if thats okay|if you dont mind|when you can|when you get a chance|whenever you can|when you have time|when you have a minute|by any chance|at all|at the moment|atm|or what|or not|right|rn|tonight|this weekend|anywhere|somewhere|whats going on|whats up|what gives|whats the deal|whats happening|whats up with that|for (ages|days|hours|weeks|months|a while|so long|a long time|a week|a day|a month|days now|hours now|weeks now|ever|forever|over a week|over a day)|all (day|week|night|morning)|since (yesterday|last night|last week|monday|tuesday|wednesday|thursday|friday|saturday|sunday|this morning|forever)|(when|if|whenever) (you|u|ya|youve|you have) (get|have|got|find) (a|some|the) (sec|second|minute|min|moment|chance|time|mo)|dialarr|bot|then|somehow|yeah|sometime|my friend|my man|sir|pal|love|dear|hun|babe|yall|honey",
    "for (me|us|him|her|them|tonight|later|the (kids|family|wife|husband|weekend|boys|girls)|my (kids|wife|husband|mom|dad|son|daughter|girlfriend|boyfriend|mum|family))",
    "(would|will|could|can) (you|ya|u)|i (think|guess|hope)|do you think|or something|or whatever|if we can|if its there|if available|i wonder|do you know|any idea",
];
