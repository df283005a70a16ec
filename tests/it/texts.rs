//! Outbound messages: plain, short and stored as sent; commands without a model; starts and ends of conversations.

use dialarr::arr::fake::media_fixtures::movie;
use dialarr::conversation::text::segments::SegmentCount;

use crate::harness::TestApp;
use crate::harness::model::{request_text, says};

/// Checks the sent form of a model's response to `question`.
async fn check(question: &str, answer: &str, sent: &str) {
    let app = TestApp::start().await;
    app.model_plays([says(answer)]);
    assert_eq!(app.sms(question).await, sent);
    let segments = SegmentCount::from_text(sent).count;
    assert_eq!(app.outbox().await, [format!("accepted {segments} {sent}")]);
}

/// Returns numbered sentences, so that a lost or repeated word is visible.
fn long_answer(sentences: usize) -> String {
    let sentences: Vec<String> = (1..=sentences).map(|n| format!("Film number {n} is a good one.")).collect();
    sentences.join(" ")
}

#[tokio::test]
async fn long_reply_is_sent_in_pages() {
    let app = TestApp::start().await;
    let answer = long_answer(25);
    app.model_plays([says(&answer)]);

    let mut pages = vec![app.sms("what is good?").await];
    while pages.last().unwrap().ends_with("\nReply MORE") {
        assert!(pages.len() < 9 && pages.last().unwrap().len() <= 320, "{pages:?}");
        pages.push(app.sms("MORE").await);
    }

    let texts: Vec<&str> =
        pages.iter().map(|page| page.strip_suffix("\nReply MORE").unwrap_or(page)).collect();
    assert_eq!((pages.len(), texts.join(" ")), (3, answer));
    assert_eq!(app.sms("more").await, "There is nothing more.");
    assert_eq!(app.sms("more").await, "There is nothing more.");
    assert_eq!(app.model().request_count(), 1);
}

#[tokio::test]
async fn more_after_the_last_page_is_answered() {
    let app = TestApp::start().await;
    assert_eq!(app.sms("more").await, "There is nothing more.");
    app.model_plays([says("Short.")]);
    app.sms("hello").await;
    assert_eq!(app.sms("more").await, "There is nothing more.");
}

#[tokio::test]
async fn other_message_ends_the_pages_of_a_reply() {
    let app = TestApp::start().await;
    app.model_plays([says(&long_answer(20)), says("Sure.")]);
    app.sms("what is good?").await;
    app.sms("never mind that, tell me something else").await;
    assert_eq!(app.sms("more").await, "There is nothing more.");
}

#[tokio::test]
async fn longest_reply_is_truncated_with_a_mark() {
    let app = TestApp::start().await;
    app.model_plays([says(&long_answer(200))]);
    let mut page = app.sms("what is good?").await;
    let mut length = page.len();
    while page.ends_with("\nReply MORE") {
        page = app.sms("more").await;
        length += page.len();
    }
    assert!(page.ends_with("..."), "{page}");
    assert!(length < 1_700, "{length}");
}

#[tokio::test]
async fn markdown_is_removed_and_its_text_kept() {
    check(
        "what is good?",
        "## Tonight\n\n**Dune** (2021) is *great*.\n\n* `Heat`\n* __Alien__\n---\n",
        "Tonight\n\nDune (2021) is great.\n\n- 'Heat'\n- Alien",
    )
    .await;
}

#[tokio::test]
async fn links_are_removed() {
    check(
        "what is dune?",
        "[Dune](https://x.example/dune) is a film. See https://x.example/more or www.x.example.",
        "Dune is a film. See or.",
    )
    .await;
}

#[tokio::test]
async fn typographic_characters_become_gsm_characters() {
    check(
        "?!",
        "\u{201c}Dune\u{201d} \u{2014} it\u{2019}s on\u{2026}\u{a0}soon",
        "\"Dune\" - it's on... soon",
    )
    .await;
}

#[tokio::test]
async fn emoji_are_sent_only_to_users_who_use_them() {
    check("hello", "Hi! \u{1f44b} Dune is on \u{1f37f}", "Hi! Dune is on").await;
    check("hello \u{1f600}", "Hi! \u{1f44b} Dune is on", "Hi! \u{1f44b} Dune is on").await;
}

#[tokio::test]
async fn later_pages_keep_their_emoji() {
    let app = TestApp::start().await;
    app.model_plays([says(&format!("{} \u{1f44b}", long_answer(12)))]);
    app.sms("what is good? \u{1f600}").await;
    let rest = app.sms("more").await;
    assert!(rest.ends_with("one. \u{1f44b}"), "{rest}");
}

#[tokio::test]
async fn reply_of_only_markdown_is_not_empty() {
    let app = TestApp::start().await;
    app.model_plays([says("---")]);
    assert_eq!(app.sms("hello").await, "Sorry, I could not work that out. Please try again.");
    app.model_plays([says("\u{1f44d}")]);
    assert_eq!(app.sms("see you").await, "\u{1f44d}");
}

#[tokio::test]
async fn number_selects_from_a_list() {
    let app = TestApp::start_without_model().await;
    for (year, tmdb) in [(1984, 841), (2021, 438_631)] {
        app.radarr().add_to_catalog(movie("Dune").year(year).tmdb(tmdb));
    }
    let list = app.sms("search dune").await;
    assert!(list.starts_with("1. Dune (") && list.contains("\n2. Dune ("), "{list}");
    app.sms("2").await;
    assert_eq!(app.radarr().added_ids().len(), 1);
}

#[tokio::test]
async fn number_without_a_list_goes_to_the_model() {
    let app = TestApp::start().await;
    app.model_plays([says("Two what?")]);
    assert_eq!(app.sms("2").await, "Two what?");
}

#[tokio::test]
async fn cleared_conversation_is_not_in_later_prompts() {
    for word in ["/clear", "/reset", "RESET", "dialarr clear"] {
        let app = TestApp::start().await;
        app.model_plays([says("Noted."), says("Which one?")]);
        app.sms("my cat is called Miso").await;
        assert_eq!(app.sms(word).await, "OK, we start over.");
        app.sms("what about it?").await;
        assert!(!request_text(app.model().requests().last().unwrap()).contains("Miso"));
        assert_eq!(app.conversations().await, ["cleared", "open"]);
    }
}

#[tokio::test]
async fn conversation_ends_after_thirty_idle_minutes() {
    let app = TestApp::start().await;
    app.model_plays([says("Noted."), says("Miso."), says("Which cat?")]);
    app.sms("my cat is called Miso").await;
    app.pass(29 * 60);
    app.sms("what is my cat called?").await;
    assert!(request_text(app.model().requests().last().unwrap()).contains("Miso"));
    app.pass(30 * 60);
    app.sms("and what is it?").await;
    assert!(!request_text(app.model().requests().last().unwrap()).contains("Miso"));
    assert_eq!(app.conversations().await, ["idle", "open"]);
}

#[tokio::test]
async fn command_list_is_sent_without_the_model() {
    let app = TestApp::start().await;
    for word in ["?", "commands", "Commands!", "commands please"] {
        assert_eq!(
            app.sms(word).await,
            "You can text: ADD, SEARCH, HAVE or REMOVE title, STATUS, UPCOMING, TELL ME, MORE, RESET. A number picks \
             from a list.\nWhat I know: WHAT DO YOU KNOW, FORGET number or ALL.\nNotifications: NOTIFY OFF \
             or ON, QUIET 22-7. LINK phone.\nAdmins: USERS, APPROVE, DENY or BLOCK code, QUOTA name +5, TELL EVERYONE text, \
             PAUSE, RESUME."
        );
    }
}

#[tokio::test]
async fn status_and_upcoming_need_no_model() {
    let app = TestApp::start().await;
    app.radarr().add_download("Dune", 62, 14);
    assert_eq!(app.sms("status").await, "Dune.1080p.WEB.H264-DEMO 62%, 14 min left.");
    assert_eq!(app.sms("Upcoming?").await, "Nothing comes out in the next 7 days.");
    assert_eq!(app.model().request_count(), 0);
}
