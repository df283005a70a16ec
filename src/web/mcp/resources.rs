//! Resources of agents: pages of lists, each read by a tool call like any other.

use rmcp::model::{CacheScope, ReadResourceResult, Resource, ResourceContents, ResourceTemplate};
use serde_json::{Map, Value, json};

/// Scheme and authority of the addresses.
const PREFIX: &str = "dialarr://";
/// Largest page number.
const MAX_PAGE: u32 = 100;
/// Number of entries on a page, as tools list them.
const PAGE_SIZE: u64 = 5;
const MEDIA_TYPE: &str = "application/json";

/// List that can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ListResource {
    Library,
    Queue,
    Upcoming,
    Requests,
}

impl ListResource {
    const ALL: [Self; 4] = [Self::Library, Self::Queue, Self::Upcoming, Self::Requests];

    fn name(self) -> &'static str {
        match self {
            Self::Library => "library",
            Self::Queue => "queue",
            Self::Upcoming => "upcoming",
            Self::Requests => "requests",
        }
    }

    fn description(self) -> &'static str {
        match self {
            Self::Library => "Titles of the library, newest first.",
            Self::Queue => "Downloads in progress.",
            Self::Upcoming => "Episodes and movies of the next 30 days.",
            Self::Requests => "Recently requested titles, newest first.",
        }
    }

    /// Returns the tool that reads the list, and its arguments beside the page.
    fn tool(self) -> (&'static str, Value) {
        match self {
            Self::Library => ("find_in_library", json!({ "sort": "newest" })),
            Self::Queue => ("check_status", json!({})),
            Self::Upcoming => ("upcoming", json!({ "days": 30 })),
            Self::Requests => ("list_requests", json!({})),
        }
    }
}

/// Page of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ListPage {
    list: ListResource,
    page: u32,
}

impl ListPage {
    /// Parses `dialarr://library` or `dialarr://library?page=2`.
    pub(super) fn parse(uri: &str) -> Option<Self> {
        let rest = uri.strip_prefix(PREFIX)?;
        let (name, page) = match rest.split_once("?page=") {
            Some((name, page)) => (name, page.parse().ok().filter(|page| (1..=MAX_PAGE).contains(page))?),
            None => (rest, 1),
        };
        let list = ListResource::ALL.into_iter().find(|list| list.name() == name)?;
        Some(Self { list, page })
    }

    fn uri(self) -> String {
        match self.page {
            1 => format!("{PREFIX}{}", self.list.name()),
            page => format!("{PREFIX}{}?page={page}", self.list.name()),
        }
    }

    /// Returns the tool call that reads the page.
    pub(super) fn tool_call(self) -> (&'static str, Map<String, Value>) {
        let (tool, arguments) = self.list.tool();
        let mut arguments = arguments.as_object().cloned().unwrap_or_default();
        arguments.insert("page".to_owned(), self.page.into());
        (tool, arguments)
    }

    /// Returns the page with the address of the next one, if there is one.
    pub(super) fn into_result(self, mut content: Value) -> ReadResourceResult {
        let total = content["total"].as_u64().unwrap_or(0);
        if total > u64::from(self.page) * PAGE_SIZE && self.page < MAX_PAGE {
            content["next"] = Self { page: self.page + 1, ..self }.uri().into();
        }
        let text = ResourceContents::TextResourceContents {
            uri: self.uri(),
            mime_type: Some(MEDIA_TYPE.to_owned()),
            text: content.to_string(),
            meta: None,
        };
        let mut result = ReadResourceResult::new(vec![text]);
        result.ttl_ms = Some(0);
        result.cache_scope = Some(CacheScope::Private);
        result
    }
}

pub(super) fn list_resources() -> Vec<Resource> {
    let resource = |list: ListResource| {
        Resource::new(ListPage { list, page: 1 }.uri(), list.name())
            .with_description(list.description())
            .with_mime_type(MEDIA_TYPE)
    };
    ListResource::ALL.into_iter().map(resource).collect()
}

pub(super) fn list_templates() -> Vec<ResourceTemplate> {
    let template = |list: ListResource| {
        ResourceTemplate::new(format!("{PREFIX}{}{{?page}}", list.name()), list.name())
            .with_description(list.description())
            .with_mime_type(MEDIA_TYPE)
    };
    ListResource::ALL.into_iter().map(template).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pages_of_known_lists_are_parsed() {
        let page = ListPage::parse("dialarr://queue?page=3").unwrap();
        assert_eq!(page, ListPage { list: ListResource::Queue, page: 3 });
        assert_eq!(page.uri(), "dialarr://queue?page=3");
        for uri in [
            "dialarr://users",
            "dialarr://queue?page=0",
            "dialarr://queue?page=101",
            "dialarr://queue?page=2&x=1",
            "dialarr://queue/..",
            "file:///etc/passwd",
            "",
        ] {
            assert_eq!(ListPage::parse(uri), None, "{uri}");
        }
    }

    #[test]
    fn page_refers_to_the_next_one_only_if_there_is_one() {
        let next = |page, total| {
            let page = ListPage { list: ListResource::Library, page };
            let result = page.into_result(json!({ "results": [], "total": total }));
            let text = match &result.contents[0] {
                ResourceContents::TextResourceContents { text, .. } => text.clone(),
                other => panic!("not a text: {other:?}"),
            };
            serde_json::from_str::<Value>(&text).unwrap()["next"].clone()
        };
        assert_eq!(next(1, 6), "dialarr://library?page=2");
        assert_eq!(next(1, 5), Value::Null);
        assert_eq!(next(2, 10), Value::Null);
    }
}
