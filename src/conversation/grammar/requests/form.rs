//! Forms of requests, and the sections of the pattern tables.

/// Form of a request, which determines how the slots of its patterns are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Add,
    Have,
    Search,
    Status,
    Why,
    Upcoming,
    Recent,
    Space,
    /// Space that the titles of the user hold.
    OwnSpace,
    Missing,
    Remove,
    /// Removal of numbered titles of the user.
    Drop,
    RemoveKeepingFiles,
    Follow,
    Unfollow,
    Recommend,
    RecommendMovie,
    RecommendSeries,
    /// Recommendation of a title that the library has.
    RecommendFromLibrary,
    Details,
    More,
    Pick,
    ShowPreferences,
    Forget,
    ForgetEverything,
    Quiet,
    QuietOff,
    Users,
    Help,
    Greeting,
    Thanks,
    Undo,
    /// What people have watched, and whose accounts are linked.
    Watching(WatchingForm),
    /// Recommendation with filters.
    Discovery(DiscoveryForm),
    /// Something else, although its words resemble a request.
    NoRequest,
}

/// Form of a request about watching, which determines how the slots of its patterns are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchingForm {
    Recent,
    Unwatched,
    /// Unwatched by everybody.
    UnwatchedByAll,
    Started,
    Watched,
    NotSince,
    /// Not watched by anybody since a time.
    NotSinceByAll,
    LinkAccount,
    UnlinkAccount,
    /// Link of the user to their account at a Seerr.
    LinkSeerr,
    UnlinkSeerr,
    /// Something that several people can watch together.
    Tonight,
}

/// Form of a request for something to watch, which determines what the text has to name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiscoveryForm {
    /// At least one filter besides the theme.
    Filtered,
    /// A theme.
    Themed,
    /// A similar title.
    Like,
    /// Nothing: the text asks for what is popular.
    Trending,
    /// Nothing: the text asks for what the library lacks.
    Missing,
}

/// Section of the table: a form and its patterns.
pub struct Section {
    pub form: Form,
    pub patterns: &'static [&'static str],
}
