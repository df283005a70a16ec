//! Patterns of requests about what people have watched, and what they could watch next from the library.

use crate::conversation::grammar::requests::form::{Form, Section, WatchingForm};

pub const SECTIONS: &[Section] = &[
    Section {
        form: Form::Watching(WatchingForm::Recent),
        patterns: &[
            "(what|which) [<kind>] (was|were) (i|we) [just|last] watching [last|again|before|$lately]",
            "(what|which) [<kind>] (was|were|am|are) (i|we) (in the middle of|halfway through|partway through) [watching|$lately]",
            "(what|which) [<kind>] did (i|we) [last|just] (watch|see|play) [last|last time|$lately]",
            "(what|which) [<kind>] have (i|we) been watching [$lately]",
            "(what|which) [<kind>] have (i|we) (watched|seen|played) $lately",
            "what (i|we|ive|weve) [was|were|been|have been] (watched|watching) [last|$lately]",
            "where (did|do) (i|we) (stop|leave off|leave it|pause|get to|get up to|stop watching) [last|last time|$lately]",
            "where (was|were) (i|we) [at|up to|again|last]",
            "(continue|resume|keep) watching",
            "(continue|resume|pick up|carry on) [from] where (i|we) left off",
            "[show|show me|whats|what is|see] [my|our|the] (watch history|viewing history|recently watched|last watched|continue watching)",
            "[whats|what is|what was] the last (thing|movie|film|show|series|episode|one) (i|we) (watched|saw|played)",
            "(what|which) [<kind>] did <person> [last|just] (watch|see|play) [last|last time|$lately]",
            "(what|which) [<kind>] (was|is|were|are|has|have) <person> [just|last|been] watching [last|now|$lately]",
            "(what|which) [<kind>] (has|have) <person> (watched|seen|played) $lately",
            "(what|whats) <person> [is|was|been|has been] watching [last|now|$lately]",
            "what <person> [has] watched [last|$lately]",
            "where did <person> (stop|leave off|stop watching) [last|last time|$lately]",
        ],
    },
    Section {
        form: Form::Watching(WatchingForm::Unwatched),
        patterns: &[
            "[show|show me|list|give me|see|find] [all|all of] [the|my|our] (unwatched|unseen) (<kind>|stuff|things|titles|ones) [on $plex|in $plex]",
            "unwatched",
            "$whats [still] (unwatched|not watched|not seen|unseen) [yet|by me|by us] [on $plex|in $plex]",
            "(what|which) [of our|of the|of my|other|else] [$titles] (havent|have not|didnt|did not|havnt) (i|we) [yet] (seen|watched|see|watch) [yet|before|on $plex|in $plex]",
            "(what|which) [of our|of the|of my|other|else] [$titles] (have|did) (i|we) (not|never|not yet) (seen|watched|see|watch) [yet|before|on $plex|in $plex]",
            "(what|which) [of our|of the|of my|other|else] [$titles] (is|are) [there] $unseen [on $plex|in $plex]",
            "[show|show me|list|give me|see] [all|all of] [the] ($titles|everything|anything|what|which) [on $plex|in $plex|we have] $unseen [on $plex|in $plex]",
            "(what|which) [$titles] (do|have) (we|i|you) (have|got) $unseen",
            "(what|which) $titles (is|are) [still] (unwatched|not watched|not seen|unseen) [yet|by me|by us]",
            "(is|are|do|have) (there|we|i) [have|got] (any|anything|some) [$titles] $unseen",
            "(is|are) (there|any|anything) [any|anything] [$titles] (unwatched|not watched yet|unseen) [on $plex|in $plex]",
            "(what|which) [$titles] (hasnt|has not|didnt|did not) <person> [yet] (seen|watched|see|watch) [yet|before]",
            "(what|which) [$titles] (has|did) <person> (not|never|not yet) (seen|watched|see|watch) [yet|before]",
        ],
    },
    Section {
        form: Form::Watching(WatchingForm::UnwatchedByAll),
        patterns: &[
            "[show|show me|list] (what|which) [$titles] (has|have|did|was|is) (nobody|no one|noone) [here] [ever|yet] (watched|seen|watch|see|played) [yet|here|on $plex]",
            "(what|which) [$titles] (hasnt|has not|havent|have not) (anyone|anybody) [here] [ever|yet] (watched|seen|played) [yet|here]",
            "[show|show me|list] $titles [that|which] (nobody|no one|noone) [here] [has|have] [ever|yet] (watched|seen|watches|played) [yet|here]",
            "$whats (unwatched|not watched) by (anyone|anybody|everyone|everybody)",
        ],
    },
    Section {
        form: Form::Watching(WatchingForm::Watched),
        patterns: &[
            "(what|which) [of our|of the|of my] [$titles] (have|did) (i|we) [already|all|ever] (seen|watched|finished|finish|completed|finished watching) [already|so far|yet|before|on $plex|in $plex]",
            "what (ive|weve|i have|we have) [already] (seen|watched|finished)",
            "[show|show me|list] [all|all of] [the] ($titles|everything) [that|which] (ive|weve|i have|we have|i|we) [already] (seen|watched|finished)",
            "[show|show me|list] [my|our|the|all] watched (<kind>|list)",
            "(what|which) [$titles] has <person> [already|ever] (seen|watched|finished) [already|so far|yet|before]",
        ],
    },
    Section {
        form: Form::Watching(WatchingForm::Started),
        patterns: &[
            "(what|which) [$titles] (did|have) (i|we) [already|only] (start|started|begin|begun) [watching|to watch] [$unfinished] [yet|already]",
            "(what|which) [$titles] (havent|have not|didnt|did not) (i|we) [yet] (finished|finish|completed|finished watching|finish watching) [yet]",
            "(what|which) [$titles] (did|have) (i|we) (not|never|not yet) (finished|finish|completed|finished watching|finish watching) [yet]",
            "what (ive|weve|i|we|i have|we have) started [watching] [$unfinished]",
            "[show|show me|list] [all|all of] [the|my|our] (unfinished|half finished|half-finished|half watched|half-watched|started) (<kind>|stuff|things|titles)",
            "[show|show me|list] [all|all of] [the] ($titles|everything) [that|which] (ive|weve|i have|we have|i|we) (started|not finished|never finished) [watching] [$unfinished] [yet]",
            "(what|which) [$titles] (has|did) <person> [already|only] (start|started|not finished|not finish) [watching] [$unfinished] [yet]",
        ],
    },
    Section {
        form: Form::Watching(WatchingForm::NotSince),
        patterns: &[
            "(what|which) [$titles] (havent|have not|didnt|did not) i (watched|seen|played|watch|see) <days>",
            "(what|which) [$titles] (have|did) i (not|never) (watched|seen|played|watch|see) <days>",
            "[show|show me|list] [all|all of] [the] ($titles|everything|anything) [that|which] (i $havent|ive (not|never)) (watched|seen|played) <days>",
            "(what|which) [$titles] (has|did) <person> (not|never) (watched|seen|played|watch|see) <days>",
            "(what|which) [$titles] (hasnt|has not|didnt) <person> (watched|seen|played|watch|see) <days>",
        ],
    },
    Section {
        form: Form::Watching(WatchingForm::NotSinceByAll),
        patterns: &[
            "[show|show me|list] (what|which) [$titles] (has|have|did|was|is) (nobody|no one|noone) [here] (watched|seen|watch|see|played|touched) [here|at all|on $plex] <days>",
            "[show|show me|list] (what|which) [$titles] (hasnt|has not|havent|have not|didnt) (anyone|anybody|we|been|anyone here) (watched|seen|played|watch|touched) [here|at all|on $plex] <days>",
            "(what|which) [$titles] (have|has) (we|anyone|anybody) (not|never) (watched|seen|played|touched) <days>",
            "(what|which) [$titles] (was|were|has|have|is|are) (not|never|not been|never been) (watched|seen|played|touched) <days>",
            "[show|show me|list|find] [all|all of|all the] ($titles|everything|anything) [that|which|we have] (nobody|no one|noone) [here] [has|have] (watched|seen|played|touched) <days>",
            "[show|show me|list|find] [all|all of|all the] ($titles|everything|anything) [that|which|we have] (we havent|we have not|hasnt been|havent been|has not been|have not been|was not|were not|wasnt|werent|not) (watched|seen|played|touched) <days>",
            "[show|show me|list|find] [all|all of|all the] (unwatched|not watched|unplayed) [$titles] <days>",
            "[show|show me|list|find] [all|all of|all the] $titles unwatched <days>",
        ],
    },
    Section {
        form: Form::Details,
        patterns: &[
            "(did|have) (i|we) [already|ever] (watch|watched|see|seen|finish|finished|finish watching|finished watching) <title> [yet|already|before]",
            "(did|has|have) <person> [already|ever] (watch|watched|see|seen|finish|finished|finish watching|finished watching) <title> [yet|already|before]",
            "who [here|all|else|has|of us] [already|has] (watched|seen|saw) <title> [yet|already|before]",
            "when did (i|we|<person>) [last] (watch|see|finish) <title>",
            "how much of <title> (have|did|has) (i|we|<person>) (seen|watched|watch|see) [already|yet]",
            "how far (am|was|were|are|did|have) (i|we) [get|gotten|got] [along] (in|into|through|with) <title>",
            "(continue|resume|carry on|keep) watching <title> [[from] where (i|we) (left off|stopped|was|were)]",
            "where (did|do|was|were|am) (i|we) (stop|leave off|stopped|at|up to|pause) (in|with|on|of|watching) <title>",
            "(what|which) episode (am|was|were|are) (i|we) [on|at|up to] (of|in|with|for) <title>",
            "(what|which) episode of <title> (am|was|were|are|did) (i|we) [on|at|up to|watching|see|watch] [last]",
        ],
    },
    Section {
        form: Form::RecommendFromLibrary,
        patterns: &[
            "(recommend|suggest|pick|give|find|show|choose) [me|us] (something|anything|smth|sth|a|an|some|any|one) [$good] [<text>] [<kind>] [to watch] $fromlibrary [to watch|tonight|<period>]",
            "(something|a|an|some) [$good] [<text>] [<kind>] [to watch] $fromlibrary [to watch|tonight|<period>]",
            "(what|which) [$good] [<text>] [<kind>] (should|can|could|do|would|shall) (i|we|you) (watch|see|recommend|suggest|put on|stream) [next|then] [<period>] $fromlibrary [<period>]",
            "(what|which|any) <mood> [<kind>] (do|have) (we|i|you) (have|got) $unseen",
            "$whats (a|some) [$good] [<text>] [<kind>] [to watch] $fromlibrary",
            "(recommend|suggest|what to watch|whats good|what is there to watch|what is good|surprise me with something|recommendations|suggestions|ideas) $fromlibrary [<period>]",
            "(any|got any|do you have any|give me|give me some|some) [good] (recommendations|suggestions|ideas|recommendation|suggestion) $fromlibrary [<period>]",
        ],
    },
    Section {
        form: Form::Watching(WatchingForm::LinkAccount),
        patterns: &[
            "(link|connect) [me|my|us] [account|user] [to|on|at|with] $mediaserver [account|user|username] [to|with|as|is|name|username|user|account]",
            "(link|connect) [me|my] [account|user] [to|on|at|with] $mediaserver [account|user|username] [to|with|as|is|name|username|user|account] <text>",
            "link [me|my] [account|user] [to|as|is] <text> (on|at|in) $mediaserver",
            "(im|i am|my name is|i go by|they call me|im called|i am called|my username is|my user is) <person> (on|at|in) $mediaserver",
            "(im|i am|my name is|my username is) (on|at|in) $mediaserver [called|named] <person>",
            "(on|at|in) $mediaserver (im|i am|my name is|i am called|im called) <person>",
            "my $mediaserver (name|account|user|username|login|user name) is <text>",
        ],
    },
    Section {
        form: Form::Watching(WatchingForm::UnlinkAccount),
        patterns: &[
            "(unlink|disconnect) [me|my|our] [account|user] [from|on|at] $mediaserver [account|user|username] [again|from me]",
        ],
    },
    Section {
        form: Form::Watching(WatchingForm::LinkSeerr),
        patterns: &[
            "(link|connect) [me|my|us] [account|user] [to|on|at|with] $seerr [account|user|username] [to|with|as|is|name|username|user|account]",
            "(link|connect) [me|my] [account|user] [to|on|at|with] $seerr [account|user|username] [to|with|as|is|name|username|user|account] <text>",
            "link [me|my] [account|user] [to|as|is] <text> (on|at|in) $seerr",
            "my $seerr (name|account|user|username|login|user name) is <text>",
        ],
    },
    Section {
        form: Form::Watching(WatchingForm::UnlinkSeerr),
        patterns: &[
            "(unlink|disconnect) [me|my|our] [account|user] [from|on|at] $seerr [account|user|username] [again|from me]",
        ],
    },
];
