//! XML of a simulated Plex. The real one states the same values in both formats: scalars are attributes, and objects are
//! elements with the name of their key. Only items are named differently.

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response};
use serde_json::{Map, Value};

/// Key of the items in JSON.
const ITEMS: &str = "Metadata";

/// Returns a response in XML, unless its body is no JSON object.
pub(super) fn xml_response(response: Response<Bytes>) -> Response<Bytes> {
    let Ok(Value::Object(body)) = serde_json::from_slice(response.body()) else { return response };
    let (mut head, _) = response.into_parts();
    head.headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/xml;charset=utf-8"));
    Response::from_parts(head, Bytes::from(document(&body)))
}

fn document(body: &Map<String, Value>) -> String {
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>");
    write_children(&mut xml, body);
    xml
}

fn write_element(xml: &mut String, name: &str, object: &Map<String, Value>) {
    xml.push_str(&format!("<{name}"));
    for (attribute, value) in object {
        if let Some(text) = scalar_text(value) {
            xml.push_str(&format!(" {attribute}=\"{}\"", escape(&text)));
        }
    }
    xml.push('>');
    write_children(xml, object);
    xml.push_str(&format!("</{name}>"));
}

fn write_children(xml: &mut String, object: &Map<String, Value>) {
    for (key, value) in object {
        let children = match value {
            Value::Object(_) => std::slice::from_ref(value),
            Value::Array(children) => children.as_slice(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => &[],
        };
        for child in children.iter().filter_map(Value::as_object) {
            write_element(xml, element_name(key, child), child);
        }
    }
}

/// Returns the name of the element of an object, which for an item depends on its type.
fn element_name<'k>(key: &'k str, object: &Map<String, Value>) -> &'k str {
    if key != ITEMS {
        return key;
    }
    match object.get("type").and_then(Value::as_str) {
        Some("show" | "season" | "artist" | "album") => "Directory",
        Some("track") => "Track",
        _ => "Video",
    }
}

/// Returns the text of an attribute; `None` for null and for what is an element.
fn scalar_text(value: &Value) -> Option<String> {
    match value {
        Value::Bool(flag) => Some(u8::from(*flag).to_string()),
        Value::Number(number) => Some(number.to_string()),
        Value::String(text) => Some(text.clone()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Escapes a text for an attribute. Characters that XML cannot state are left out.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\t' | '\n' | '\r' => escaped.push_str(&format!("&#{};", u32::from(character))),
            '\u{0}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => {}
            _ => escaped.push(character),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(body: &Value, expected: &str) {
        let xml = document(body.as_object().unwrap());
        assert_eq!(xml, format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>{expected}"));
    }

    #[test]
    fn scalars_are_attributes_and_objects_are_elements() {
        let section = json!({ "key": "1", "type": "show", "refreshing": false, "Location": [{ "id": 1 }, { "id": 2 }] });
        check(
            &json!({ "MediaContainer": { "size": 1, "offset": null, "Directory": [section] } }),
            r#"<MediaContainer size="1"><Directory key="1" refreshing="0" type="show"><Location id="1"></Location><Location id="2"></Location></Directory></MediaContainer>"#,
        );
        check(
            &json!({ "MediaContainer": { "User": { "id": "1" } } }),
            r#"<MediaContainer><User id="1"></User></MediaContainer>"#,
        );
    }

    #[test]
    fn items_are_named_by_their_type() {
        let items = ["movie", "episode", "show", "track"].map(|name| json!({ "type": name }));
        check(
            &json!({ "MediaContainer": { "Metadata": items } }),
            r#"<MediaContainer><Video type="movie"></Video><Video type="episode"></Video><Directory type="show"></Directory><Track type="track"></Track></MediaContainer>"#,
        );
    }

    #[test]
    fn text_of_attributes_is_escaped() {
        let title = "Tom & \"Jerry\" <\u{1}3>\n'é'";
        check(
            &json!({ "Video": { "title": title } }),
            r#"<Video title="Tom &amp; &quot;Jerry&quot; &lt;3&gt;&#10;'é'"></Video>"#,
        );
    }

    #[test]
    fn response_without_an_object_stays_as_it_is() {
        for body in ["", "[]", "text"] {
            let response = xml_response(Response::new(Bytes::from_static(body.as_bytes())));
            assert_eq!(response.body(), body);
            assert!(response.headers().is_empty());
        }
    }
}
