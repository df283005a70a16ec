//! Users of media servers, and of a Seerr, that are linked to people, and the texts about these links.

/// Kind of a server on which people have accounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MediaServerKind {
    Jellyfin,
    Plex,
    /// Server where people ask for titles, and nobody watches them.
    Seerr,
}

impl MediaServerKind {
    /// Returns the name in URLs and settings, such as `jellyfin`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Jellyfin => "jellyfin",
            Self::Plex => "plex",
            Self::Seerr => "seerr",
        }
    }

    /// Returns the name of the product, such as `Jellyfin`.
    pub fn label(self) -> &'static str {
        match self {
            Self::Jellyfin => "Jellyfin",
            Self::Plex => "Plex",
            Self::Seerr => "Seerr",
        }
    }

    /// Returns whether people watch titles on the server.
    pub fn is_media_server(self) -> bool {
        match self {
            Self::Jellyfin | Self::Plex => true,
            Self::Seerr => false,
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Jellyfin, Self::Plex, Self::Seerr].into_iter().find(|kind| kind.name() == name)
    }
}

/// User of a server that is, or may be, linked to a person.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ViewerAccount {
    pub server: MediaServerKind,
    /// Id of the user on the server.
    pub id: String,
    /// Name of the user on the server when it was linked.
    pub name: String,
}

/// Accounts that a person unlinks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccountScope {
    MediaServers,
    Seerr,
}

impl AccountScope {
    pub fn includes(self, server: MediaServerKind) -> bool {
        server.is_media_server() == (self == Self::MediaServers)
    }
}

/// Who may know what a person has watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WatchSharing {
    /// Only the person.
    #[default]
    Off,
    /// All members of the household.
    Household,
}

/// Formats the message to the admins about a request for a link.
pub fn format_link_request(requester: &str, account: &ViewerAccount, code: &str) -> String {
    let ViewerAccount { server, name, .. } = account;
    let purpose = match server {
        MediaServerKind::Jellyfin | MediaServerKind::Plex => "to ask me what this user has watched",
        MediaServerKind::Seerr => "to ask for titles in the name of this user",
    };
    format!(
        "{requester} asks to be linked to the {} user {name}, {purpose}. Reply APPROVE {code} or DENY {code}",
        server.label()
    )
}

/// Formats the message to a person whose account was linked.
pub fn format_linked(account: &ViewerAccount) -> String {
    let ViewerAccount { server, name, .. } = account;
    let use_of_link = match server {
        MediaServerKind::Jellyfin | MediaServerKind::Plex => {
            "Ask me what you were watching, or what you have not seen."
        }
        MediaServerKind::Seerr => "Titles that you ask me for are requested there.",
    };
    format!("You are linked to the {} user {name}. {use_of_link}", server.label())
}

/// Formats the message to a person whose request for a link was denied.
pub fn format_link_denied(account: &ViewerAccount) -> String {
    format!("An admin decided not to link you to the {} user {}.", account.server.label(), account.name)
}

/// Formats the message to a person whose request for a link no admin answered.
pub fn format_link_expired(account: &ViewerAccount) -> String {
    let ViewerAccount { server, name, .. } = account;
    format!(
        "No admin answered your request for the {} user {name}, so it is not linked. You can ask again.",
        server.label()
    )
}

/// Formats the message about a person who is linked to another user of the same Seerr.
pub fn format_other_account(account: &ViewerAccount) -> String {
    let label = account.server.label();
    format!(
        "Not linked to the {label} user {}: there is already a link to another {label} user.",
        account.name
    )
}

/// Formats the message about an account that is linked to another person.
pub fn format_link_taken(account: &ViewerAccount) -> String {
    format!("The {} user {} belongs to somebody else I know.", account.server.label(), account.name)
}
