//! Patterns of requests for something that several people can watch together.

use crate::conversation::grammar::requests::form::{Form, Section, WatchingForm};

pub const SECTIONS: &[Section] = &[Section {
    form: Form::Watching(WatchingForm::Tonight),
    patterns: &[
        "$whatcan $everybody $watch [together] [$tonight] $within",
        "$whatcan we $watch together [$tonight] $within",
        "$whatcan we $watch [together] $tonight $within",
        "$whatcan <person> [<person>] and <person> [and <person>] [and (i|me)] [all|both] $watch [together] [$tonight] $within",
        "$whatcan <person> [and (i|me)] $watch [together] $tonight $within",
        "$whatcan (i|me) and <person> [and <person>] $watch [together] [$tonight] $within",
        "$whatcan (we|i) [all|both] $watch [$tonight] with <person> [<person>] [and <person>] [and <person>] [$tonight] $within",
        "(movie|film|family) night [$tonight] [(with|for) ($everybody|<person> [<person>] [and <person>] [and <person>])] [$tonight] $within",
        "(something|anything|a <kind>|one) (for|that) $everybody [can|could|to] $watch [together] [$tonight] $within",
        "(find|pick|suggest|recommend|choose) [us] (something|a <kind>) ((for|that) $everybody [can|could|to]|(we|that we|for us) [can|could|to] all) $watch [together] [$tonight] $within",
        "(something|a <kind>) we (can|could) all $watch [together] [$tonight] $within",
    ],
}];

/// Parts that these patterns share.
pub const MACROS: &[(&str, &str)] = &[
    (
        "whatcan",
        "(what|which) [<kind>] (can|should|could|shall|do|will)|$whats (something|a <kind>) [that]|what (is|s) there that",
    ),
    (
        "everybody",
        "(we|us|you) all [can|could]|we (can|could|should|both) all|(everyone|everybody|all of us|both of us|we both|the whole family) [can|could]",
    ),
    ("watch", "watch|see|put on|stream"),
    ("tonight", "tonight|this evening|later tonight|later today|today|now"),
    (
        "within",
        "[[thats|that is|but|for] $below <length> [long]|[thats|that is] <length> (or less|or shorter|or under|max|tops|at most)|(we|i) [only|just|all] have [got] [only|just] <length>|(we have|weve) got [only|just] <length>|(in|with|for) <length>]",
    ),
];
