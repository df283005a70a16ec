//! Tests of access to remembered answers. Users, groups and everyone have rows with the same text and the same vectors.

use std::collections::BTreeSet;

use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Text};
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

use super::groups::{self, SharedMessage};
use super::indexing_queue::{self, AnnotationSource, EmbeddedAnswer, IndexingOutcome, IndexingResult};
use super::responses::{self, AnswerOwner, NewAnswer};
use super::search::{self, VectorQuery};
use super::shared_answers;
use crate::conversation::memory::answer_metadata::{self, TurnEffect};
use crate::conversation::memory::recall::{RecallCandidate, rank_candidates};
use crate::conversation::text::normalization::content_words;
use crate::conversation::transcript::{PhoneNumber, UserId};
use crate::memory::index::VectorIndex;
use crate::memory::vector::UnitVector;
use crate::store::people::users::{self, FirstContactRole};
use crate::store::privacy::retention::{RetentionProgress, erase_expired_text};
use crate::store::privacy::{erase_answer, erase_conversations};
use crate::store::schema::agent_responses;
use crate::store::{Conn, scratch};

const NOW: Timestamp = Timestamp::UNIX_EPOCH;
const LATER: Timestamp = Timestamp::constant(3_600, 0);
const MODEL: &str = "a-model";

fn user(conn: &mut Conn, n: i64) -> UserId {
    let phone = PhoneNumber::parse(&format!("+1555010{n:04}")).unwrap();
    users::ensure_user(conn, &phone, FirstContactRole::Member, NOW).unwrap()
}

fn vector(words: &str) -> UnitVector {
    let mut numbers = vec![0.01; 8];
    for (at, byte) in words.bytes().enumerate() {
        numbers[at % 8] += f32::from(byte);
    }
    UnitVector::new(numbers).unwrap()
}

fn says(conn: &mut Conn, source: &str, owner: AnswerOwner, by: Option<UserId>, words: (&str, &str)) -> i64 {
    let new = NewAnswer {
        source: source.to_owned(),
        owner,
        user: by,
        turn: None,
        agent: "m".to_owned(),
        question: words.0.to_owned(),
        answer: words.1.to_owned(),
    };
    responses::store_answer(conn, &new, NOW).unwrap();
    agent_responses::table
        .filter(agent_responses::source.eq(source))
        .select(agent_responses::id)
        .first(conn)
        .unwrap()
}

fn learned(question: &str, answer: &str, model: &str) -> IndexingResult {
    IndexingResult {
        extraction: answer_metadata::extract_without_model(question, answer, TurnEffect::NoToolCall),
        source: AnnotationSource::Code,
        is_shareable: false,
        vectors: Some(EmbeddedAnswer {
            model: model.to_owned(),
            trigger: Some(vector(question)),
            response: vector(answer),
        }),
    }
}

fn told(conn: &mut Conn, source: &str, owner: AnswerOwner, by: Option<UserId>, words: (&str, &str)) -> i64 {
    let id = says(conn, source, owner, by, words);
    indexing_queue::complete_indexing_job(conn, id, &learned(words.0, words.1, MODEL), NOW).unwrap();
    id
}

fn own(conn: &mut Conn, n: i64, by: UserId, words: (&str, &str)) -> i64 {
    told(conn, &format!("turn:{n}"), AnswerOwner::User(by), Some(by), words)
}

/// Returns everything that a user finds, by words and by vectors, as one of their turns would.
fn finds(conn: &mut Conn, index: &mut VectorIndex, viewer: UserId, query: &str) -> Vec<RecallCandidate> {
    let owners = search::load_visible_owners(conn, viewer).unwrap();
    for owner in owners.keys() {
        let after = index.revision(owner, MODEL);
        let changes = search::load_vector_changes(conn, owner, MODEL, after, 1_000).unwrap();
        index.apply_changes(owner, MODEL, changes);
    }
    let sought = vector(query);
    let likest = index.find_candidates(owners.keys(), &sought, 1_000, -1.0);
    let words = search::find_by_words(conn, &owners, &content_words(query), 1_000).unwrap();
    let ids: Vec<i64> = [likest.triggers, likest.responses, words].concat();
    let sought = Some(VectorQuery { model: MODEL, vector: &sought });
    search::load_candidates(conn, &owners, &ids, sought, None).unwrap()
}

fn found(conn: &mut Conn, viewer: UserId, query: &str) -> Vec<i64> {
    let mut ids: Vec<i64> =
        finds(conn, &mut VectorIndex::default(), viewer, query).iter().map(|row| row.id).collect();
    ids.sort_unstable();
    ids
}

#[test]
fn user_finds_own_group_and_global_answers() {
    let mut conn = scratch();
    let [ann, bob, cal] = [1, 2, 3].map(|n| user(&mut conn, n));
    let anns = own(&mut conn, 1, ann, ("add heat", "Added Heat."));
    let bobs = own(&mut conn, 2, bob, ("add heat", "Added Heat."));
    groups::remember_shared_message(
        &mut conn,
        "notice:1",
        &SharedMessage { text: "Heat is ready.", recipients: &[bob, ann], author: None },
        NOW,
    )
    .unwrap();
    let global = told(&mut conn, "api:1", AnswerOwner::Everyone, None, ("where is heat", "Heat is in Plex."));

    let group: i64 = 3;
    assert_eq!(found(&mut conn, ann, "heat"), [anns, group, global]);
    assert_eq!(found(&mut conn, bob, "heat"), [bobs, group, global]);
    assert_eq!(found(&mut conn, cal, "heat"), [global]);
}

#[test]
fn message_to_one_recipient_creates_no_group() {
    let mut conn = scratch();
    let ann = user(&mut conn, 1);
    groups::remember_shared_message(
        &mut conn,
        "notice:1",
        &SharedMessage { text: "Heat is ready.", recipients: &[ann, ann], author: None },
        NOW,
    )
    .unwrap();
    assert_eq!(agent_responses::table.count().get_result::<i64>(&mut conn).unwrap(), 0);
}

#[test]
fn answer_is_stored_and_indexed_once() {
    let mut conn = scratch();
    let ann = user(&mut conn, 1);
    let id = says(&mut conn, "turn:1", AnswerOwner::User(ann), Some(ann), ("add heat", "Added Heat."));
    says(&mut conn, "turn:1", AnswerOwner::User(ann), Some(ann), ("other", "words"));
    assert_eq!(agent_responses::table.count().get_result::<i64>(&mut conn).unwrap(), 1);

    let learned = learned("add heat", "Added Heat.", MODEL);
    assert_eq!(
        indexing_queue::complete_indexing_job(&mut conn, id, &learned, NOW).unwrap(),
        IndexingOutcome::Recorded
    );
    assert_eq!(
        indexing_queue::complete_indexing_job(&mut conn, id, &learned, NOW).unwrap(),
        IndexingOutcome::NotPending
    );
    assert_eq!(indexing_queue::exclude_answer(&mut conn, id, NOW).unwrap(), IndexingOutcome::NotPending);
    assert_eq!(indexing_queue::claim_indexing_jobs(&mut conn, 9, LATER).unwrap(), []);
}

#[test]
fn claimed_row_is_reserved_for_a_time_and_counts_attempts() {
    let mut conn = scratch();
    let ann = user(&mut conn, 1);
    says(&mut conn, "turn:1", AnswerOwner::User(ann), Some(ann), ("add heat", "Added Heat."));
    let tries = |conn: &mut Conn, at| {
        indexing_queue::claim_indexing_jobs(conn, 9, at)
            .unwrap()
            .into_iter()
            .map(|taken| taken.attempt)
            .collect::<Vec<_>>()
    };
    assert_eq!(tries(&mut conn, NOW), [1]);
    assert_eq!(tries(&mut conn, NOW), [0_u32; 0]);
    assert_eq!(tries(&mut conn, LATER), [2]);
}

#[test]
fn repeated_exchange_is_found_once() {
    let mut conn = scratch();
    let ann = user(&mut conn, 1);
    own(&mut conn, 1, ann, ("add heat", "Added Heat."));
    let again = own(&mut conn, 2, ann, ("Add Heat!", "added heat"));
    assert_eq!(found(&mut conn, ann, "heat"), [again]);
    let times: i64 =
        agent_responses::table.find(again).select(agent_responses::times).first(&mut conn).unwrap();
    assert_eq!(times, 2);
}

#[test]
fn negated_question_is_not_a_repeat() {
    let mut conn = scratch();
    let ann = user(&mut conn, 1);
    own(&mut conn, 1, ann, ("delete heat", "ok"));
    own(&mut conn, 2, ann, ("do not delete heat", "ok"));
    assert_eq!(found(&mut conn, ann, "heat delete"), [1, 2]);
}

#[test]
fn excluded_answer_is_not_found() {
    let mut conn = scratch();
    let ann = user(&mut conn, 1);
    let id = says(&mut conn, "turn:1", AnswerOwner::User(ann), Some(ann), ("hello walrus", "Hi walrus."));
    assert_eq!(found(&mut conn, ann, "walrus"), [id]);
    indexing_queue::exclude_answer(&mut conn, id, NOW).unwrap();
    assert_eq!(found(&mut conn, ann, "walrus"), [0_i64; 0]);
}

#[test]
fn vectors_of_another_model_are_ignored_until_replaced() {
    let mut conn = scratch();
    let ann = user(&mut conn, 1);
    let id = says(&mut conn, "turn:1", AnswerOwner::User(ann), Some(ann), ("q", "a"));
    indexing_queue::complete_indexing_job(&mut conn, id, &learned("q", "a", "older"), NOW).unwrap();
    let by_vector = |conn: &mut Conn, index: &mut VectorIndex| {
        finds(conn, index, ann, "q").iter().filter(|row| row.answer_similarity.is_some()).count()
    };
    let mut index = VectorIndex::default();
    assert_eq!(by_vector(&mut conn, &mut index), 0);

    let missing = indexing_queue::load_answers_without_vectors(&mut conn, MODEL, 9).unwrap();
    assert_eq!(missing, [(id, "q".to_owned(), "a".to_owned())]);
    let vectors =
        EmbeddedAnswer { model: MODEL.to_owned(), trigger: Some(vector("q")), response: vector("a") };
    indexing_queue::store_vectors(&mut conn, id, &vectors, NOW).unwrap();
    assert_eq!(indexing_queue::load_answers_without_vectors(&mut conn, MODEL, 9).unwrap(), []);
    assert_eq!(by_vector(&mut conn, &mut index), 1);
}

#[test]
fn answer_that_cannot_be_embedded_is_tried_three_times() {
    let mut conn = scratch();
    let ann = user(&mut conn, 1);
    let id = says(&mut conn, "turn:1", AnswerOwner::User(ann), Some(ann), ("walrus", "a"));
    indexing_queue::complete_indexing_job(
        &mut conn,
        id,
        &IndexingResult { vectors: None, ..learned("walrus", "a", MODEL) },
        NOW,
    )
    .unwrap();
    for left in [1, 1, 1, 0] {
        assert_eq!(indexing_queue::load_answers_without_vectors(&mut conn, MODEL, 9).unwrap().len(), left);
        indexing_queue::count_failed_embedding(&mut conn, id, MODEL).unwrap();
    }
    assert_eq!(indexing_queue::load_answers_without_vectors(&mut conn, "another", 9).unwrap().len(), 1);
    assert_eq!(found(&mut conn, ann, "walrus"), [id]);
}

#[test]
fn same_answer_to_two_users_becomes_a_shared_suggestion() {
    let mut conn = scratch();
    let [ann, bob, cal] = [1, 2, 3].map(|n| user(&mut conn, n));
    let suggest = |conn: &mut Conn, n: i64, by: UserId, question: &str| {
        let id = says(
            conn,
            &format!("turn:{n}"),
            AnswerOwner::User(by),
            Some(by),
            (question, "In Plex, on walrus."),
        );
        let learned =
            IndexingResult { is_shareable: true, ..learned(question, "In Plex, on walrus.", MODEL) };
        indexing_queue::complete_indexing_job(conn, id, &learned, NOW).unwrap();
    };
    suggest(&mut conn, 1, ann, "where do I watch it");
    suggest(&mut conn, 2, ann, "where do I watch it?");
    suggest(&mut conn, 3, bob, "where do I watch it tonight");
    assert_eq!(found(&mut conn, cal, "walrus"), [0_i64; 0]);
    suggest(&mut conn, 4, bob, "Where do I watch it?");
    assert_eq!(found(&mut conn, cal, "walrus"), [4]);
    assert_eq!(
        shared_answers::load_suggested_answers(&mut conn)
            .unwrap()
            .iter()
            .map(|row| row.id)
            .collect::<Vec<_>>(),
        [3]
    );
    // An answer that an admin refused to share remains private, even if another user receives it.
    suggest(&mut conn, 5, ann, "where is the remote");
    assert_eq!(shared_answers::refuse_answer(&mut conn, 5).unwrap(), shared_answers::ReviewOutcome::Applied);
    suggest(&mut conn, 6, bob, "where is the remote");
    suggest(&mut conn, 7, cal, "where is the remote?");
    suggest(&mut conn, 8, ann, "where is the remote");
    suggest(&mut conn, 9, bob, "where is the remote");
    // An answer that everyone already finds needs no further decision.
    suggest(&mut conn, 10, cal, "where do I watch it");
    assert_eq!(
        shared_answers::load_suggested_answers(&mut conn)
            .unwrap()
            .iter()
            .map(|row| row.id)
            .collect::<Vec<_>>(),
        [3]
    );
    // An answer that the operator erased is not shared again automatically.
    assert!(erase_answer(&mut conn, 4, NOW).unwrap());
    let (dan, eve) = (user(&mut conn, 4), user(&mut conn, 5));
    suggest(&mut conn, 11, dan, "where do I watch it");
    suggest(&mut conn, 12, eve, "where do I watch it");
    assert_eq!(shared_answers::load_shared_answers(&mut conn).unwrap(), []);
}

#[test]
fn second_user_must_not_be_a_test_user() {
    let mut conn = scratch();
    let [ann, tester] = [1, 2].map(|n| user(&mut conn, n));
    conn.batch_execute("UPDATE users SET test = 1 WHERE id = 2").unwrap();
    for (n, by) in [(1, ann), (2, tester)] {
        let words = ("where do I watch it", "In Plex, on walrus.");
        let id = says(&mut conn, &format!("turn:{n}"), AnswerOwner::User(by), Some(by), words);
        let learned = IndexingResult { is_shareable: true, ..learned(words.0, words.1, MODEL) };
        indexing_queue::complete_indexing_job(&mut conn, id, &learned, NOW).unwrap();
    }
    assert_eq!(
        shared_answers::load_suggested_answers(&mut conn)
            .unwrap()
            .iter()
            .map(|row| row.id)
            .collect::<Vec<_>>(),
        [1]
    );
    assert_eq!(shared_answers::load_shared_answers(&mut conn).unwrap(), []);
}

#[test]
fn admin_decides_a_suggestion_once() {
    let mut conn = scratch();
    let [ann, bob] = [1, 2].map(|n| user(&mut conn, n));
    let id =
        says(&mut conn, "turn:1", AnswerOwner::User(ann), Some(ann), ("where is the walrus", "In Plex."));
    indexing_queue::complete_indexing_job(
        &mut conn,
        id,
        &IndexingResult { is_shareable: true, ..learned("", "", MODEL) },
        NOW,
    )
    .unwrap();
    assert_eq!(found(&mut conn, bob, "walrus"), [0_i64; 0]);
    assert_eq!(
        shared_answers::approve_answer(&mut conn, id).unwrap(),
        shared_answers::ReviewOutcome::Applied
    );
    assert_eq!(
        shared_answers::approve_answer(&mut conn, id).unwrap(),
        shared_answers::ReviewOutcome::TooLate
    );
    assert_eq!(shared_answers::refuse_answer(&mut conn, id).unwrap(), shared_answers::ReviewOutcome::TooLate);
    assert_eq!(found(&mut conn, bob, "walrus"), [id]);
}

#[test]
fn search_operators_are_plain_words() {
    let mut conn = scratch();
    let [ann, bob] = [1, 2].map(|n| user(&mut conn, n));
    own(&mut conn, 1, bob, ("walrus", "walrus"));
    let owners = search::load_visible_owners(&mut conn, ann).unwrap();
    for word in [
        "\"",
        "walrus\" OR owner:\"u2",
        "*",
        "owner:u2",
        ") OR (walrus",
        "NEAR(",
        "-walrus",
        "{owner}:u2",
        "",
    ] {
        let found = search::find_by_words(&mut conn, &owners, &[word.to_owned()], 9).unwrap();
        assert_eq!(found, [0_i64; 0], "{word}");
    }
}

#[test]
fn rare_words_weigh_more_and_metadata_half() {
    let mut conn = scratch();
    let ann = user(&mut conn, 1);
    let rare = own(&mut conn, 1, ann, ("severance", "A show about work."));
    let both = own(&mut conn, 2, ann, ("severance downloads", "Two episodes."));
    let common = (3..9).map(|n| own(&mut conn, n, ann, ("downloads", &format!("It is {n}.")))).max().unwrap();
    let noted = says(&mut conn, "turn:9", AnswerOwner::User(ann), Some(ann), ("what else", "Nothing else."));
    let mut notes = learned("", "", MODEL);
    notes.source = AnnotationSource::Model;
    notes.extraction.keywords = vec!["severance".to_owned()];
    indexing_queue::complete_indexing_job(&mut conn, noted, &notes, NOW).unwrap();

    let owners = search::load_visible_owners(&mut conn, ann).unwrap();
    let (downloads, severance) = ("downloads".to_owned(), "severance".to_owned());
    let found = search::find_by_words(&mut conn, &owners, &[downloads, severance.clone()], 3).unwrap();
    assert_eq!(found, [both, rare, common]);
    let found = search::find_by_words(&mut conn, &owners, &[severance], 3).unwrap();
    assert_eq!(found, [both, rare, noted]);
}

#[test]
fn answers_of_others_do_not_affect_the_ranking() {
    let order = |others: usize| {
        let mut conn = scratch();
        let (ann, bob) = (user(&mut conn, 1), user(&mut conn, 2));
        for n in 1..5 {
            own(
                &mut conn,
                n,
                ann,
                (if n % 2 == 0 { "walrus" } else { "walrus plumbing" }, &format!("It is {n}.")),
            );
        }
        for n in 0..others {
            own(&mut conn, 100 + n as i64, bob, ("plumbing", &format!("It is {n}.")));
        }
        let owners = search::load_visible_owners(&mut conn, ann).unwrap();
        search::find_by_words(&mut conn, &owners, &["walrus".to_owned(), "plumbing".to_owned()], 9).unwrap()
    };
    assert_eq!(order(0), order(50));
}

#[test]
fn answers_in_the_prompt_are_not_recalled_again() {
    let mut conn = scratch();
    let ann = user(&mut conn, 1);
    own(&mut conn, 1, ann, ("walrus", "walrus"));
    let rows = finds(&mut conn, &mut VectorIndex::default(), ann, "walrus");
    assert_eq!(rank_candidates("walrus", rows, &[1], 0.3, NOW).ranked_answers().len(), 1);
}

/// Words shared by all users, so that all texts are similar.
const WORDS: [&str; 6] = ["heat", "dune", "delete", "walrus", "ready", "office"];

#[derive(Debug, Clone)]
enum Act {
    Says {
        by: usize,
        question: usize,
        answer: usize,
    },
    /// The model adds a word to the notes on a user's exchange that the exchange does not contain.
    IsNoted {
        by: usize,
        answer: usize,
    },
    Added {
        answer: usize,
    },
    /// An admin shares an answer that a user received with everyone.
    IsShared {
        by: usize,
        answer: usize,
    },
    Together {
        first: usize,
        second: usize,
        answer: usize,
    },
    ForgetsAll {
        who: usize,
    },
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let word = || 0..WORDS.len();
    let act = prop_oneof![
        5 => (0..5_usize, word(), word()).prop_map(|(by, question, answer)| Act::Says { by, question, answer }),
        3 => (0..5_usize, word()).prop_map(|(by, answer)| Act::IsNoted { by, answer }),
        1 => word().prop_map(|answer| Act::Added { answer }),
        2 => (0..5_usize, word()).prop_map(|(by, answer)| Act::IsShared { by, answer }),
        2 => (0..5_usize, 0..5_usize, word())
            .prop_map(|(first, second, answer)| Act::Together { first, second, answer }),
        1 => (0..5_usize).prop_map(|who| Act::ForgetsAll { who }),
    ];
    prop::collection::vec(act, 1..24)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// Checks that, for all exchanges and erasures of five users, each user finds only their own exchanges, those
    /// received together with others, and those that the operator added for everyone; and that the index that was
    /// updated through all changes finds the same as a new one.
    #[test]
    fn no_row_crosses_between_users(acts in acts()) {
        let mut conn = scratch();
        let people: Vec<UserId> = (0..5).map(|n| user(&mut conn, n)).collect();
        let mut index = VectorIndex::default();
        let mut heard: Vec<Vec<String>> = vec![Vec::new(); 5];
        let mut noted: Vec<Vec<String>> = vec![Vec::new(); 5];
        // Author, recipient and text of each exchange.
        let mut together: Vec<(usize, usize, String)> = Vec::new();
        let mut added: Vec<String> = Vec::new();
        let mut shared: Vec<Vec<String>> = vec![Vec::new(); 5];
        for (n, act) in acts.iter().enumerate() {
            match *act {
                Act::Says { by, question, answer } => {
                    let answer = format!("{} said{n}", WORDS[answer]);
                    let source = format!("turn:{n}");
                    told(&mut conn, &source, AnswerOwner::User(people[by]), Some(people[by]), (WORDS[question], &answer));
                    heard[by].push(answer);
                }
                Act::IsNoted { by, answer } => {
                    let answer = format!("{} noted{n}", WORDS[answer]);
                    let owner = AnswerOwner::User(people[by]);
                    let id = says(&mut conn, &format!("turn:{n}"), owner, Some(people[by]), ("which one", &answer));
                    let mut learned = learned("which one", &answer, MODEL);
                    (learned.source, learned.extraction.keywords) = (AnnotationSource::Model, vec!["marmot".to_owned()]);
                    indexing_queue::complete_indexing_job(&mut conn, id, &learned, NOW).unwrap();
                    heard[by].push(answer.clone());
                    noted[by].push(answer);
                }
                Act::Added { answer } => {
                    let answer = format!("{} added{n}", WORDS[answer]);
                    told(&mut conn, &format!("added:{n}"), AnswerOwner::Everyone, None, ("which one", &answer));
                    added.push(answer);
                }
                Act::IsShared { by, answer } => {
                    let answer = format!("{} shared{n}", WORDS[answer]);
                    let owner = AnswerOwner::User(people[by]);
                    let id = says(&mut conn, &format!("turn:{n}"), owner, Some(people[by]), ("which one", &answer));
                    let learned = IndexingResult { is_shareable: true, ..learned("which one", &answer, MODEL) };
                    indexing_queue::complete_indexing_job(&mut conn, id, &learned, NOW).unwrap();
                    shared_answers::approve_answer(&mut conn, id).unwrap();
                    shared[by].push(answer);
                }
                Act::Together { first, second, answer } => {
                    let answer = format!("{} heard{n}", WORDS[answer]);
                    let members = [people[first], people[second]];
                    groups::remember_shared_message(&mut conn, &format!("notice:{n}"), &SharedMessage { text: &answer, recipients: &members, author: Some(people[first]) }, NOW).unwrap();
                    if first != second {
                        together.extend([first, second].map(|by| (first, by, answer.clone())));
                    }
                }
                Act::ForgetsAll { who } => {
                    erase_conversations(&mut conn, people[who], NOW).unwrap();
                    heard[who].clear();
                    // The user's text is erased for others too.
                    together.retain(|(from, by, _)| *from != who && *by != who);
                    noted[who].clear();
                    shared[who].clear();
                }
            }
            // Each step updates the index only for one user.
            finds(&mut conn, &mut index, people[n % 5], WORDS[n % 6]);
        }
        for (at, viewer) in people.iter().enumerate() {
            let mut all = BTreeSet::new();
            for query in WORDS {
                let rows = finds(&mut conn, &mut index, *viewer, query);
                prop_assert_eq!(rows.len(), finds(&mut conn, &mut VectorIndex::default(), *viewer, query).len());
                all.extend(rows.into_iter().map(|row| row.answer));
            }
            let with_others = together.iter().filter(|(_, by, _)| *by == at).map(|(_, _, answer)| answer);
            let of_all = added.iter().chain(shared.iter().flatten());
            let theirs: BTreeSet<String> = heard[at].iter().chain(with_others).chain(of_all).cloned().collect();
            prop_assert_eq!(&all, &theirs, "{}", at);
            let owners = search::load_visible_owners(&mut conn, *viewer).unwrap();
            let by_note = search::find_by_words(&mut conn, &owners, &["marmot".to_owned()], 99).unwrap();
            let by_note = search::load_candidates(&mut conn, &owners, &by_note, None, None).unwrap();
            let by_note: BTreeSet<String> = by_note.into_iter().map(|row| row.answer).collect();
            prop_assert_eq!(&by_note, &noted[at].iter().cloned().collect::<BTreeSet<String>>(), "{}", at);
        }
    }
}

#[test]
fn retention_erases_old_answers_except_those_of_the_operator() {
    let mut conn = scratch();
    let ann = user(&mut conn, 1);
    own(&mut conn, 1, ann, ("walrus", "walrus"));
    let added = told(&mut conn, "api:1", AnswerOwner::Everyone, None, ("walrus", "In Plex."));
    diesel::update(agent_responses::table.find(added))
        .set(agent_responses::agent.eq(responses::OPERATOR))
        .execute(&mut conn)
        .unwrap();
    let day = SignedDuration::from_hours(24);
    erase_expired_text(&mut conn, NOW + day, 100, NOW + day).unwrap();
    assert_eq!(found(&mut conn, ann, "walrus"), [added]);
}

#[derive(QueryableByName)]
struct Count {
    #[diesel(sql_type = BigInt)]
    n: i64,
}

/// Returns the number of pages of the full-text index that contain these bytes. The index stores words without their
/// endings.
fn pages_with(conn: &mut Conn, bytes: &str) -> i64 {
    let pages = "SELECT count(*) AS n FROM (SELECT block AS bytes FROM response_words_data \
                 UNION ALL SELECT term FROM response_words_idx) WHERE instr(bytes, CAST(? AS BLOB)) > 0";
    diesel::sql_query(pages).bind::<Text, _>(bytes).get_result::<Count>(conn).unwrap().n
}

#[test]
fn bulk_erasure_is_immediate_and_overwritten_soon() {
    let mut conn = scratch();
    let (ann, bob) = (user(&mut conn, 1), user(&mut conn, 2));
    for n in 0..400 {
        let many: Vec<String> = (0..28).map(|at| format!("qxwalrus{}", (n * 28 + at) * 7)).collect();
        own(&mut conn, n, ann, ("qxwalrus", &many.join(" ")));
    }
    let bobs = own(&mut conn, 1_000, bob, ("qxzebra", "qxzebra"));
    assert!(pages_with(&mut conn, "walru") > 0);

    erase_conversations(&mut conn, ann, NOW).unwrap();
    assert_eq!(found(&mut conn, ann, "qxwalrus"), [0_i64; 0]);
    assert!(pages_with(&mut conn, "walru") > 0, "nothing was left to be overwritten");
    while erase_expired_text(&mut conn, NOW, 100, NOW).unwrap() == RetentionProgress::More {}
    assert_eq!(pages_with(&mut conn, "walru"), 0);
    assert_eq!(found(&mut conn, bob, "qxzebra"), [bobs]);

    // From here on a removed word is again overwritten with its row, and single remaining words disappear over time.
    erase_conversations(&mut conn, bob, NOW).unwrap();
    assert_eq!(pages_with(&mut conn, "zebra"), 0);
    conn.batch_execute("INSERT INTO response_words(response_words, rank) VALUES ('integrity-check', 1)")
        .unwrap();
}

/// Tests the words by which the index orders its pages, which are not overwritten with their text.
#[test]
fn index_terms_are_compacted_soon_after_an_erasure() {
    let day = SignedDuration::from_hours(24);
    let mut conn = scratch();
    let (ann, bob) = (user(&mut conn, 1), user(&mut conn, 2));
    // Adjacent rows, so that pages begin with words of each user.
    let side_by_side = |conn: &mut Conn, first: i64| {
        for n in 0..60 {
            let words = |end: &str| {
                let numbered = |at| format!("q{}walru{end}", (n * 150 + at) * 7);
                (0..150).map(numbered).collect::<Vec<_>>().join(" ")
            };
            own(conn, first + n, ann, ("qxwalrus", &words("x")));
            told(
                conn,
                &format!("added:{}", first + n),
                AnswerOwner::User(bob),
                Some(bob),
                ("which", &words("w")),
            );
        }
    };
    side_by_side(&mut conn, 0);
    erase_conversations(&mut conn, ann, NOW).unwrap();
    assert!(pages_with(&mut conn, "walrux") > 0, "nothing stays that would have to go");
    while erase_expired_text(&mut conn, NOW, 100, NOW).unwrap() == RetentionProgress::More {}
    assert_eq!(pages_with(&mut conn, "walrux"), 0);

    side_by_side(&mut conn, 100);
    conn.batch_execute("UPDATE agent_responses SET agent = 'operator' WHERE user_id = 2").unwrap();
    while erase_expired_text(&mut conn, NOW + day, 100, NOW + day).unwrap() == RetentionProgress::More {}
    assert!(pages_with(&mut conn, "walrux") > 0, "nothing stays that would have to go");
    while erase_expired_text(&mut conn, NOW + day, 100, NOW + 8 * day).unwrap() == RetentionProgress::More {}
    assert_eq!(pages_with(&mut conn, "walrux"), 0);
}

#[test]
fn metadata_is_searchable_until_erased() {
    let mut conn = scratch();
    let ann = user(&mut conn, 1);
    let id =
        says(&mut conn, "turn:1", AnswerOwner::User(ann), Some(ann), ("where do I watch it", "Open Plex."));
    let mut noted = learned("", "", MODEL);
    noted.source = AnnotationSource::Model;
    noted.extraction.keywords = vec!["television".to_owned()];
    indexing_queue::complete_indexing_job(&mut conn, id, &noted, NOW).unwrap();
    let by_words = |conn: &mut Conn, word: &str| {
        let owners = search::load_visible_owners(conn, ann).unwrap();
        search::find_by_words(conn, &owners, &[word.to_owned()], 9).unwrap()
    };
    for word in ["television", "plex", "watch"] {
        assert_eq!(by_words(&mut conn, word), [id], "{word}");
    }
    erase_conversations(&mut conn, ann, NOW).unwrap();
    assert_eq!(by_words(&mut conn, "television"), [0_i64; 0]);
    conn.batch_execute("INSERT INTO response_words(response_words, rank) VALUES ('integrity-check', 1)")
        .unwrap();
}
