//! Browser without JavaScript: follows links, fills in and submits the forms of a page, and follows the redirect of a
//! response.

use super::browser::{Browser, Page};

/// Entry that removes the check mark of a checkbox.
pub(crate) const UNCHECKED: &str = "(unchecked)";

/// Form of a page, as HTML.
struct Form<'a>(&'a str);

impl<'a> Form<'a> {
    /// Returns the form with this button.
    #[track_caller]
    fn with_button(page: &'a Page, button: &str) -> (Self, &'a str) {
        let forms = page.html.split("<form ").skip(1).map(|rest| rest.split("</form>").next().unwrap());
        for form in forms {
            for tag in form.split("<button").skip(1) {
                if tag.split("</button>").next().unwrap().ends_with(&format!(">{button}")) {
                    return (Self(form), tag);
                }
            }
        }
        panic!("no form with the button {button:?}: {}", page.text());
    }

    /// Returns the names and values of the fields, in their order.
    fn fields(&self) -> Vec<(String, String)> {
        let tags = self.0.split("<input ").skip(1).filter_map(|rest| rest.split('>').next());
        // Browsers leave out a checkbox that is not checked, and a disabled field has no name here.
        let is_sent = |tag: &&str| !tag.contains("type=\"checkbox\"") || tag.ends_with(" checked");
        let fields = tags.filter(is_sent).filter_map(|tag| {
            let value = attribute(tag, "value").unwrap_or_default();
            Some((attribute(tag, "name")?, value))
        });
        let lists = self.0.split("<select ").skip(1).filter_map(|rest| rest.split("</select>").next());
        let chosen = lists.filter_map(|list| {
            let options = || list.split("<option ").skip(1);
            let option = options().find(|option| option.split('>').next().unwrap().ends_with(" selected"));
            Some((attribute(list, "name")?, attribute(option.or_else(|| options().next())?, "value")?))
        });
        fields.chain(chosen).collect()
    }
}

fn attribute(tag: &str, name: &str) -> Option<String> {
    let tag = tag.split('>').next()?;
    let (_, rest) = tag.split_once(&format!("{name}=\""))?;
    Some(rest.split('"').next()?.replace("&#38;", "&"))
}

impl Browser<'_> {
    /// Types into the form that has this button, presses the button, and returns the resulting page.
    pub(crate) async fn presses(&mut self, page: &Page, button: &str, typed: &[(&str, &str)]) -> Page {
        let (form, pressed) = Form::with_button(page, button);
        let mut fields = form.fields();
        for (name, text) in typed {
            fields.retain(|(field, _)| field != name);
            if *text != UNCHECKED {
                fields.push((name.to_string(), text.to_string()));
            }
        }
        if let Some(name) = attribute(pressed, "name") {
            fields.push((name, attribute(pressed, "value").unwrap_or_default()));
        }
        let fields: Vec<(&str, &str)> =
            fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let action = attribute(form.0, "action").unwrap();
        let (path, _) = action.split_once('#').unwrap_or((&action, ""));
        if attribute(form.0, "method").as_deref() == Some("post") {
            let answer = self.post(path, &fields).await;
            self.follow_redirects(answer).await
        } else {
            self.get(&format!("{path}?{}", serde_urlencoded::to_string(fields).unwrap())).await
        }
    }

    /// Returns the page that a response redirects to, or the response itself.
    async fn follow_redirects(&mut self, answer: Page) -> Page {
        let Some(location) = answer.location.clone().filter(|_| answer.status == 303) else { return answer };
        let (path, _) = location.split_once('#').unwrap_or((&location, ""));
        self.get(path).await
    }
}
