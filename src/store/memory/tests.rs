//! Tests of the access to stored answers. Users, groups and everyone have rows with the same text and the same vectors.

use std::collections::BTreeSet;

use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Text};
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

use super::groups::{self, SharedMessage};
use super::indexing_queue::{
    self, AnnotationSource, BatchScope, EmbeddedAnswer, IndexingJob, IndexingOutcome, IndexingResult,
};
use super::responses::{self, AnswerOwner, AnswerSource, NewAnswer};
use super::search::{self, RecallRange, VectorQuery, VisibleOwners};
use super::shared_answers;
use crate::conversation::memory::answer_metadata::{self, TurnEffect};
use crate::conversation::memory::recall::{RecallCandidate, rank_candidates};
use crate::conversation::text::normalization::content_words;
use crate::conversation::transcript::{PhoneNumber, UserId};
use crate::memory::index::VectorIndex;
use crate::memory::vector::UnitVector;
use crate::store::people::users::{self, FirstContactRole};
use crate::store::privacy::retention::{RetentionProgress, erase_expired_text};
use crate::store::privacy::{erase_answer, erase_user_content};
use crate::store::schema::agent_responses;
use crate::store::text_index::{self, TextIndexProgress};
use crate::store::{Conn, QueryResult, scratch};

const NOW: Timestamp = Timestamp::UNIX_EPOCH;
const LATER: Timestamp = Timestamp::constant(3_600, 0);
const MODEL: &str = "a-model";

fn create_user(conn: &mut Conn, n: i64) -> UserId {
    let phone = PhoneNumber::parse(&format!("+1555010{n:04}")).unwrap();
    users::ensure_user(conn, &phone, FirstContactRole::Member, NOW).unwrap()
}

/// Returns a vector that depends only on the bytes of the text.
fn vector(text: &str) -> UnitVector {
    let mut numbers = vec![0.01; 8];
    for (index, byte) in text.bytes().enumerate() {
        numbers[index % 8] += f32::from(byte);
    }
    UnitVector::new(numbers).unwrap()
}

/// Stores an answer that is not indexed yet.
fn store_answer(
    conn: &mut Conn,
    source: &str,
    owner: AnswerOwner,
    user: Option<UserId>,
    (question, answer): (&str, &str),
) -> i64 {
    let new = NewAnswer {
        source: AnswerSource::Other(source.to_owned()),
        owner,
        user,
        agent: "m".to_owned(),
        question: question.to_owned(),
        answer: answer.to_owned(),
    };
    responses::store_answer(conn, &new, NOW).unwrap();
    agent_responses::table
        .filter(agent_responses::source.eq(source))
        .select(agent_responses::id)
        .first(conn)
        .unwrap()
}

fn indexing_result(question: &str, answer: &str, model: &str) -> IndexingResult {
    IndexingResult {
        metadata: answer_metadata::extract_without_model(question, answer, TurnEffect::NoToolCall),
        source: AnnotationSource::Code,
        is_shareable: false,
        vectors: Some(EmbeddedAnswer {
            model: model.to_owned(),
            trigger: Some(vector(question)),
            response: vector(answer),
        }),
    }
}

/// Stores an answer and indexes it.
fn store_indexed_answer(
    conn: &mut Conn,
    source: &str,
    owner: AnswerOwner,
    user: Option<UserId>,
    exchange: (&str, &str),
) -> i64 {
    let id = store_answer(conn, source, owner, user, exchange);
    indexing_queue::complete_indexing_job(conn, id, &indexing_result(exchange.0, exchange.1, MODEL), NOW)
        .unwrap();
    id
}

/// Stores and indexes an answer of one of the user's turns.
fn store_user_answer(conn: &mut Conn, n: i64, user: UserId, exchange: (&str, &str)) -> i64 {
    store_indexed_answer(conn, &format!("test:{n}"), AnswerOwner::User(user), Some(user), exchange)
}

/// Finds answers by words after all text was indexed.
fn find_answers_by_words(
    conn: &mut Conn,
    owners: &VisibleOwners,
    words: &[String],
    limit: usize,
) -> QueryResult<Vec<i64>> {
    while text_index::index_new_text(conn)? == TextIndexProgress::More {}
    search::find_answers_by_words(conn, owners, words, limit)
}

/// Returns all answers that a turn of the user finds, by words and by vectors.
fn find_candidates(
    conn: &mut Conn,
    index: &mut VectorIndex,
    viewer: UserId,
    query: &str,
) -> Vec<RecallCandidate> {
    let owners = search::load_visible_owners(conn, viewer).unwrap();
    let revisions: Vec<_> =
        owners.keys().iter().map(|owner| (owner.as_str(), index.revision(owner, MODEL))).collect();
    for (owner, changes) in search::load_vector_changes(conn, &revisions, MODEL, 1_000).unwrap() {
        index.apply_changes(&owner, MODEL, changes);
    }
    let query_vector = vector(query);
    let by_vector = index.find_candidates(owners.keys(), &query_vector, 1_000, -1.0);
    let by_words = find_answers_by_words(conn, &owners, &content_words(query), 1_000).unwrap();
    let ids: Vec<i64> = [by_vector.triggers, by_vector.responses, by_words].concat();
    let query_vector = Some(VectorQuery { model: MODEL, vector: &query_vector });
    search::load_candidates(conn, &owners, &ids, query_vector, RecallRange::default()).unwrap()
}

fn find_answer_ids(conn: &mut Conn, viewer: UserId, query: &str) -> Vec<i64> {
    let mut ids: Vec<i64> =
        find_candidates(conn, &mut VectorIndex::default(), viewer, query).iter().map(|row| row.id).collect();
    ids.sort_unstable();
    ids
}

#[test]
fn user_finds_own_group_and_global_answers() {
    let mut conn = scratch();
    let [ann, bob, cal] = [1, 2, 3].map(|n| create_user(&mut conn, n));
    let anns_answer = store_user_answer(&mut conn, 1, ann, ("add heat", "Added Heat."));
    let bobs_answer = store_user_answer(&mut conn, 2, bob, ("add heat", "Added Heat."));
    groups::remember_shared_message(
        &mut conn,
        "notice:1",
        &SharedMessage { text: "Heat is ready.", recipients: &[bob, ann], author: None },
        NOW,
    )
    .unwrap();
    let global = store_indexed_answer(
        &mut conn,
        "api:1",
        AnswerOwner::Everyone,
        None,
        ("where is heat", "Heat is in Plex."),
    );

    let group_message: i64 = 3;
    assert_eq!(find_answer_ids(&mut conn, ann, "heat"), [anns_answer, group_message, global]);
    assert_eq!(find_answer_ids(&mut conn, bob, "heat"), [bobs_answer, group_message, global]);
    assert_eq!(find_answer_ids(&mut conn, cal, "heat"), [global]);
}

#[test]
fn message_to_one_recipient_is_not_stored() {
    let mut conn = scratch();
    let ann = create_user(&mut conn, 1);
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
    let ann = create_user(&mut conn, 1);
    let id =
        store_answer(&mut conn, "test:1", AnswerOwner::User(ann), Some(ann), ("add heat", "Added Heat."));
    store_answer(&mut conn, "test:1", AnswerOwner::User(ann), Some(ann), ("other", "text"));
    assert_eq!(agent_responses::table.count().get_result::<i64>(&mut conn).unwrap(), 1);

    let result = indexing_result("add heat", "Added Heat.", MODEL);
    assert_eq!(
        indexing_queue::complete_indexing_job(&mut conn, id, &result, NOW).unwrap(),
        IndexingOutcome::Recorded
    );
    assert_eq!(
        indexing_queue::complete_indexing_job(&mut conn, id, &result, NOW).unwrap(),
        IndexingOutcome::NotPending
    );
    assert_eq!(indexing_queue::exclude_answers(&mut conn, &[id], NOW).unwrap(), 0);
    assert_eq!(claim_jobs(&mut conn, BatchScope::AllUsers, LATER), []);
}

fn claim_jobs(conn: &mut Conn, scope: BatchScope, now: Timestamp) -> Vec<IndexingJob> {
    indexing_queue::claim_indexing_jobs(conn, scope, i64::MAX, now).unwrap().jobs
}

#[test]
fn batch_without_a_model_call_contains_answers_of_all_users() {
    let mut conn = scratch();
    let [ann, bob] = [1, 2].map(|n| create_user(&mut conn, n));
    for (n, user) in [ann, bob, ann].into_iter().enumerate() {
        let source = format!("test:{n}");
        store_answer(&mut conn, &source, AnswerOwner::User(user), Some(user), ("add heat", "Added Heat."));
    }
    let mut claim = |newest, now| {
        let batch =
            indexing_queue::claim_indexing_jobs(&mut conn, BatchScope::AllUsers, newest, now).unwrap();
        (batch.jobs.iter().map(|job| job.id).collect::<Vec<_>>(), batch.has_more)
    };
    assert_eq!(claim(2, NOW), (vec![1, 2], false));
    assert_eq!(claim(3, NOW), (vec![3], false));
    assert_eq!(claim(3, LATER), (vec![1], true), "a row that failed is alone");
}

#[test]
fn claimed_row_is_leased_and_counts_attempts() {
    let mut conn = scratch();
    let ann = create_user(&mut conn, 1);
    store_answer(&mut conn, "test:1", AnswerOwner::User(ann), Some(ann), ("add heat", "Added Heat."));
    let claim_attempts = |conn: &mut Conn, now| {
        claim_jobs(conn, BatchScope::AllUsers, now).into_iter().map(|job| job.attempt).collect::<Vec<_>>()
    };
    assert_eq!(claim_attempts(&mut conn, NOW), [1]);
    assert_eq!(claim_attempts(&mut conn, NOW), [0_u32; 0]);
    assert_eq!(claim_attempts(&mut conn, LATER), [2]);
}

#[test]
fn batch_contains_only_first_attempts_for_one_user() {
    let mut conn = scratch();
    let [ann, bob] = [1, 2].map(|n| create_user(&mut conn, n));
    let long_answer = "x".repeat(2_000);
    let answers = [(ann, "One."), (bob, "Two."), (ann, "Three.")].into_iter();
    for (n, (user, answer)) in answers.chain(std::iter::repeat_n((ann, long_answer.as_str()), 7)).enumerate()
    {
        let source = format!("test:{n}");
        store_answer(&mut conn, &source, AnswerOwner::User(user), Some(user), ("add heat", answer));
    }
    let mut claim_ids = |limit, now| {
        let jobs = claim_jobs(&mut conn, BatchScope::OneUser(limit), now);
        jobs.into_iter().map(|job| job.id).collect::<Vec<_>>()
    };
    assert_eq!(claim_ids(2, NOW), [1, 3]);
    assert_eq!(claim_ids(8, NOW), [2]);
    assert_eq!(claim_ids(8, NOW), [4, 5, 6, 7, 8, 9], "the size of a batch is limited");
    assert_eq!(claim_ids(8, LATER), [10]);
    assert_eq!(claim_ids(8, LATER), [1], "a row that failed is alone");
}

#[test]
fn repeated_exchange_is_found_once() {
    let mut conn = scratch();
    let ann = create_user(&mut conn, 1);
    store_user_answer(&mut conn, 1, ann, ("add heat", "Added Heat."));
    let repeated = store_user_answer(&mut conn, 2, ann, ("Add Heat!", "added heat"));
    assert_eq!(find_answer_ids(&mut conn, ann, "heat"), [repeated]);
    let times: i64 =
        agent_responses::table.find(repeated).select(agent_responses::times).first(&mut conn).unwrap();
    assert_eq!(times, 2);
}

#[test]
fn negated_question_is_not_a_repeat() {
    let mut conn = scratch();
    let ann = create_user(&mut conn, 1);
    store_user_answer(&mut conn, 1, ann, ("delete heat", "ok"));
    store_user_answer(&mut conn, 2, ann, ("do not delete heat", "ok"));
    assert_eq!(find_answer_ids(&mut conn, ann, "heat delete"), [1, 2]);
}

#[test]
fn excluded_answer_is_not_found() {
    let mut conn = scratch();
    let ann = create_user(&mut conn, 1);
    let id =
        store_answer(&mut conn, "test:1", AnswerOwner::User(ann), Some(ann), ("hello walrus", "Hi walrus."));
    assert_eq!(find_answer_ids(&mut conn, ann, "walrus"), [id]);
    indexing_queue::exclude_answers(&mut conn, &[id], NOW).unwrap();
    assert_eq!(find_answer_ids(&mut conn, ann, "walrus"), [0_i64; 0]);
}

#[test]
fn vectors_of_another_model_are_ignored_until_recomputed() {
    let mut conn = scratch();
    let ann = create_user(&mut conn, 1);
    let id = store_answer(&mut conn, "test:1", AnswerOwner::User(ann), Some(ann), ("q", "a"));
    indexing_queue::complete_indexing_job(&mut conn, id, &indexing_result("q", "a", "older"), NOW).unwrap();
    let count_vector_matches = |conn: &mut Conn, index: &mut VectorIndex| {
        find_candidates(conn, index, ann, "q").iter().filter(|row| row.answer_similarity.is_some()).count()
    };
    let mut index = VectorIndex::default();
    assert_eq!(count_vector_matches(&mut conn, &mut index), 0);

    let missing = indexing_queue::load_answers_without_vectors(&mut conn, MODEL, 9).unwrap();
    assert_eq!(missing, [(id, "q".to_owned(), "a".to_owned())]);
    let vectors =
        EmbeddedAnswer { model: MODEL.to_owned(), trigger: Some(vector("q")), response: vector("a") };
    indexing_queue::store_vectors(&mut conn, id, &vectors, NOW).unwrap();
    assert_eq!(indexing_queue::load_answers_without_vectors(&mut conn, MODEL, 9).unwrap(), []);
    assert_eq!(count_vector_matches(&mut conn, &mut index), 1);
}

#[test]
fn answer_that_cannot_be_embedded_is_tried_three_times() {
    let mut conn = scratch();
    let ann = create_user(&mut conn, 1);
    let id = store_answer(&mut conn, "test:1", AnswerOwner::User(ann), Some(ann), ("walrus", "a"));
    indexing_queue::complete_indexing_job(
        &mut conn,
        id,
        &IndexingResult { vectors: None, ..indexing_result("walrus", "a", MODEL) },
        NOW,
    )
    .unwrap();
    for expected_count in [1, 1, 1, 0] {
        assert_eq!(
            indexing_queue::load_answers_without_vectors(&mut conn, MODEL, 9).unwrap().len(),
            expected_count
        );
        indexing_queue::count_failed_embedding(&mut conn, id, MODEL).unwrap();
    }
    assert_eq!(indexing_queue::load_answers_without_vectors(&mut conn, "another", 9).unwrap().len(), 1);
    assert_eq!(find_answer_ids(&mut conn, ann, "walrus"), [id]);
}

#[test]
fn same_answer_to_two_users_is_shared_with_everyone() {
    let mut conn = scratch();
    let [ann, bob, cal] = [1, 2, 3].map(|n| create_user(&mut conn, n));
    let suggest = |conn: &mut Conn, n: i64, user: UserId, question: &str| {
        let id = store_answer(
            conn,
            &format!("test:{n}"),
            AnswerOwner::User(user),
            Some(user),
            (question, "In Plex, on walrus."),
        );
        let result =
            IndexingResult { is_shareable: true, ..indexing_result(question, "In Plex, on walrus.", MODEL) };
        indexing_queue::complete_indexing_job(conn, id, &result, NOW).unwrap();
    };
    suggest(&mut conn, 1, ann, "where do I watch it");
    suggest(&mut conn, 2, ann, "where do I watch it?");
    suggest(&mut conn, 3, bob, "where do I watch it tonight");
    assert_eq!(find_answer_ids(&mut conn, cal, "walrus"), [0_i64; 0]);
    suggest(&mut conn, 4, bob, "Where do I watch it?");
    assert_eq!(find_answer_ids(&mut conn, cal, "walrus"), [4]);
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
    let (dan, eve) = (create_user(&mut conn, 4), create_user(&mut conn, 5));
    suggest(&mut conn, 11, dan, "where do I watch it");
    suggest(&mut conn, 12, eve, "where do I watch it");
    assert_eq!(shared_answers::load_shared_answers(&mut conn).unwrap(), []);
}

#[test]
fn answer_to_a_test_user_confirms_no_suggestion() {
    let mut conn = scratch();
    let [ann, tester] = [1, 2].map(|n| create_user(&mut conn, n));
    conn.batch_execute("UPDATE users SET test = 1 WHERE id = 2").unwrap();
    for (n, user) in [(1, ann), (2, tester)] {
        let exchange = ("where do I watch it", "In Plex, on walrus.");
        let id = store_answer(&mut conn, &format!("test:{n}"), AnswerOwner::User(user), Some(user), exchange);
        let result = IndexingResult { is_shareable: true, ..indexing_result(exchange.0, exchange.1, MODEL) };
        indexing_queue::complete_indexing_job(&mut conn, id, &result, NOW).unwrap();
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
fn suggestion_can_be_decided_only_once() {
    let mut conn = scratch();
    let [ann, bob] = [1, 2].map(|n| create_user(&mut conn, n));
    let id = store_answer(
        &mut conn,
        "test:1",
        AnswerOwner::User(ann),
        Some(ann),
        ("where is the walrus", "In Plex."),
    );
    indexing_queue::complete_indexing_job(
        &mut conn,
        id,
        &IndexingResult { is_shareable: true, ..indexing_result("", "", MODEL) },
        NOW,
    )
    .unwrap();
    assert_eq!(find_answer_ids(&mut conn, bob, "walrus"), [0_i64; 0]);
    assert_eq!(
        shared_answers::approve_answer(&mut conn, id).unwrap(),
        shared_answers::ReviewOutcome::Applied
    );
    assert_eq!(
        shared_answers::approve_answer(&mut conn, id).unwrap(),
        shared_answers::ReviewOutcome::TooLate
    );
    assert_eq!(shared_answers::refuse_answer(&mut conn, id).unwrap(), shared_answers::ReviewOutcome::TooLate);
    assert_eq!(find_answer_ids(&mut conn, bob, "walrus"), [id]);
}

#[test]
fn search_operators_are_plain_words() {
    let mut conn = scratch();
    let [ann, bob] = [1, 2].map(|n| create_user(&mut conn, n));
    store_user_answer(&mut conn, 1, bob, ("walrus", "walrus"));
    let owners = search::load_visible_owners(&mut conn, ann).unwrap();
    for query in [
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
        let found = find_answers_by_words(&mut conn, &owners, &[query.to_owned()], 9).unwrap();
        assert_eq!(found, [0_i64; 0], "{query}");
    }
}

#[test]
fn rare_words_rank_higher_and_metadata_lower() {
    let mut conn = scratch();
    let ann = create_user(&mut conn, 1);
    let rare = store_user_answer(&mut conn, 1, ann, ("severance", "A show about work."));
    let both = store_user_answer(&mut conn, 2, ann, ("severance downloads", "Two episodes."));
    let common = (3..9)
        .map(|n| store_user_answer(&mut conn, n, ann, ("downloads", &format!("It is {n}."))))
        .max()
        .unwrap();
    let annotated =
        store_answer(&mut conn, "test:9", AnswerOwner::User(ann), Some(ann), ("what else", "Nothing else."));
    let mut result = indexing_result("", "", MODEL);
    result.source = AnnotationSource::Model;
    result.metadata.keywords = vec!["severance".to_owned()];
    indexing_queue::complete_indexing_job(&mut conn, annotated, &result, NOW).unwrap();

    let owners = search::load_visible_owners(&mut conn, ann).unwrap();
    let (downloads, severance) = ("downloads".to_owned(), "severance".to_owned());
    let found = find_answers_by_words(&mut conn, &owners, &[downloads, severance.clone()], 3).unwrap();
    assert_eq!(found, [both, rare, common]);
    let found = find_answers_by_words(&mut conn, &owners, &[severance], 3).unwrap();
    assert_eq!(found, [both, rare, annotated]);
}

#[test]
fn answers_of_others_do_not_affect_the_ranking() {
    let ranking = |other_answers: usize| {
        let mut conn = scratch();
        let (ann, bob) = (create_user(&mut conn, 1), create_user(&mut conn, 2));
        for n in 1..5 {
            store_user_answer(
                &mut conn,
                n,
                ann,
                (if n % 2 == 0 { "walrus" } else { "walrus plumbing" }, &format!("It is {n}.")),
            );
        }
        for n in 0..other_answers {
            store_user_answer(&mut conn, 100 + n as i64, bob, ("plumbing", &format!("It is {n}.")));
        }
        let owners = search::load_visible_owners(&mut conn, ann).unwrap();
        find_answers_by_words(&mut conn, &owners, &["walrus".to_owned(), "plumbing".to_owned()], 9).unwrap()
    };
    assert_eq!(ranking(0), ranking(50));
}

#[test]
fn answer_found_by_words_and_vectors_is_ranked_once() {
    let mut conn = scratch();
    let ann = create_user(&mut conn, 1);
    store_user_answer(&mut conn, 1, ann, ("walrus", "walrus"));
    let rows = find_candidates(&mut conn, &mut VectorIndex::default(), ann, "walrus");
    assert_eq!(rank_candidates("walrus", rows, &[1], 0.3, NOW).ranked_answers().len(), 1);
}

/// Words that all users share, so that all texts are similar.
const WORDS: [&str; 6] = ["heat", "dune", "delete", "walrus", "ready", "office"];

#[derive(Debug, Clone)]
enum Operation {
    /// The user receives an answer.
    Answer { user: usize, question: usize, answer: usize },
    /// The model adds a keyword to a user's answer that the exchange does not contain.
    Annotate { user: usize, answer: usize },
    /// The operator adds an answer for everyone.
    AddGlobal { answer: usize },
    /// An admin shares a user's answer with everyone.
    Share { user: usize, answer: usize },
    /// The first user sends a message that both receive.
    SendToBoth { first: usize, second: usize, answer: usize },
    /// The user's conversations are erased.
    Erase { user: usize },
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let word = || 0..WORDS.len();
    let operation = prop_oneof![
        5 => (0..5_usize, word(), word()).prop_map(|(user, question, answer)| Operation::Answer { user, question, answer }),
        3 => (0..5_usize, word()).prop_map(|(user, answer)| Operation::Annotate { user, answer }),
        1 => word().prop_map(|answer| Operation::AddGlobal { answer }),
        2 => (0..5_usize, word()).prop_map(|(user, answer)| Operation::Share { user, answer }),
        2 => (0..5_usize, 0..5_usize, word())
            .prop_map(|(first, second, answer)| Operation::SendToBoth { first, second, answer }),
        1 => (0..5_usize).prop_map(|user| Operation::Erase { user }),
    ];
    prop::collection::vec(operation, 1..24)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// Checks that, for all exchanges and erasures of five users, each user finds only their own exchanges, those
    /// received together with others, and those that the operator added for everyone; and that the index that was
    /// updated through all changes finds the same as a new one.
    #[test]
    fn no_row_crosses_between_users(operations in operations()) {
        let mut conn = scratch();
        let users: Vec<UserId> = (0..5).map(|n| create_user(&mut conn, n)).collect();
        let mut vector_index = VectorIndex::default();
        let mut private: Vec<Vec<String>> = vec![Vec::new(); 5];
        let mut annotated: Vec<Vec<String>> = vec![Vec::new(); 5];
        // Author, recipient and text of each message to two users.
        let mut group_messages: Vec<(usize, usize, String)> = Vec::new();
        let mut global: Vec<String> = Vec::new();
        let mut shared: Vec<Vec<String>> = vec![Vec::new(); 5];
        for (n, operation) in operations.iter().enumerate() {
            match *operation {
                Operation::Answer { user, question, answer } => {
                    let answer = format!("{} said{n}", WORDS[answer]);
                    let source = format!("test:{n}");
                    store_indexed_answer(&mut conn, &source, AnswerOwner::User(users[user]), Some(users[user]), (WORDS[question], &answer));
                    private[user].push(answer);
                }
                Operation::Annotate { user, answer } => {
                    let answer = format!("{} noted{n}", WORDS[answer]);
                    let owner = AnswerOwner::User(users[user]);
                    let id = store_answer(&mut conn, &format!("test:{n}"), owner, Some(users[user]), ("which one", &answer));
                    let mut result = indexing_result("which one", &answer, MODEL);
                    (result.source, result.metadata.keywords) = (AnnotationSource::Model, vec!["marmot".to_owned()]);
                    indexing_queue::complete_indexing_job(&mut conn, id, &result, NOW).unwrap();
                    private[user].push(answer.clone());
                    annotated[user].push(answer);
                }
                Operation::AddGlobal { answer } => {
                    let answer = format!("{} added{n}", WORDS[answer]);
                    store_indexed_answer(&mut conn, &format!("added:{n}"), AnswerOwner::Everyone, None, ("which one", &answer));
                    global.push(answer);
                }
                Operation::Share { user, answer } => {
                    let answer = format!("{} shared{n}", WORDS[answer]);
                    let owner = AnswerOwner::User(users[user]);
                    let id = store_answer(&mut conn, &format!("test:{n}"), owner, Some(users[user]), ("which one", &answer));
                    let result = IndexingResult { is_shareable: true, ..indexing_result("which one", &answer, MODEL) };
                    indexing_queue::complete_indexing_job(&mut conn, id, &result, NOW).unwrap();
                    shared_answers::approve_answer(&mut conn, id).unwrap();
                    shared[user].push(answer);
                }
                Operation::SendToBoth { first, second, answer } => {
                    let answer = format!("{} heard{n}", WORDS[answer]);
                    let members = [users[first], users[second]];
                    groups::remember_shared_message(&mut conn, &format!("notice:{n}"), &SharedMessage { text: &answer, recipients: &members, author: Some(users[first]) }, NOW).unwrap();
                    if first != second {
                        group_messages.extend([first, second].map(|recipient| (first, recipient, answer.clone())));
                    }
                }
                Operation::Erase { user } => {
                    erase_user_content(&mut conn, users[user], NOW).unwrap();
                    private[user].clear();
                    // The user's text is erased for others too.
                    group_messages.retain(|(author, recipient, _)| *author != user && *recipient != user);
                    annotated[user].clear();
                    shared[user].clear();
                }
            }
            // Each step updates the index only for one user.
            find_candidates(&mut conn, &mut vector_index, users[n % 5], WORDS[n % 6]);
        }
        for (index, viewer) in users.iter().enumerate() {
            let mut found = BTreeSet::new();
            for query in WORDS {
                let rows = find_candidates(&mut conn, &mut vector_index, *viewer, query);
                prop_assert_eq!(rows.len(), find_candidates(&mut conn, &mut VectorIndex::default(), *viewer, query).len());
                found.extend(rows.into_iter().map(|row| row.answer));
            }
            let received = group_messages.iter().filter(|(_, recipient, _)| *recipient == index).map(|(_, _, answer)| answer);
            let of_everyone = global.iter().chain(shared.iter().flatten());
            let expected: BTreeSet<String> = private[index].iter().chain(received).chain(of_everyone).cloned().collect();
            prop_assert_eq!(&found, &expected, "{}", index);
            let owners = search::load_visible_owners(&mut conn, *viewer).unwrap();
            let by_keyword = find_answers_by_words(&mut conn, &owners, &["marmot".to_owned()], 99).unwrap();
            let by_keyword = search::load_candidates(&mut conn, &owners, &by_keyword, None, RecallRange::default()).unwrap();
            let by_keyword: BTreeSet<String> = by_keyword.into_iter().map(|row| row.answer).collect();
            prop_assert_eq!(&by_keyword, &annotated[index].iter().cloned().collect::<BTreeSet<String>>(), "{}", index);
        }
    }
}

#[test]
fn retention_erases_old_answers_except_those_of_the_operator() {
    let mut conn = scratch();
    let ann = create_user(&mut conn, 1);
    store_user_answer(&mut conn, 1, ann, ("walrus", "walrus"));
    let added = store_indexed_answer(&mut conn, "api:1", AnswerOwner::Everyone, None, ("walrus", "In Plex."));
    diesel::update(agent_responses::table.find(added))
        .set(agent_responses::agent.eq(responses::OPERATOR))
        .execute(&mut conn)
        .unwrap();
    let day = SignedDuration::from_hours(24);
    erase_expired_text(&mut conn, NOW + day, 100, NOW + day).unwrap();
    assert_eq!(find_answer_ids(&mut conn, ann, "walrus"), [added]);
}

#[derive(QueryableByName)]
struct Count {
    #[diesel(sql_type = BigInt)]
    n: i64,
}

/// Returns the number of pages of the full-text index that contain these bytes. The index stores word stems.
fn count_pages_with(conn: &mut Conn, bytes: &str) -> i64 {
    let query = "SELECT count(*) AS n FROM (SELECT block AS bytes FROM response_words_data \
                 UNION ALL SELECT term FROM response_words_idx) WHERE instr(bytes, CAST(? AS BLOB)) > 0";
    diesel::sql_query(query).bind::<Text, _>(bytes).get_result::<Count>(conn).unwrap().n
}

#[test]
fn bulk_erasure_hides_words_at_once_and_overwrites_them_later() {
    let mut conn = scratch();
    let (ann, bob) = (create_user(&mut conn, 1), create_user(&mut conn, 2));
    for n in 0..400 {
        let words: Vec<String> = (0..28).map(|index| format!("qxwalrus{}", (n * 28 + index) * 7)).collect();
        store_user_answer(&mut conn, n, ann, ("qxwalrus", &words.join(" ")));
        text_index::index_new_text(&mut conn).unwrap();
    }
    let bobs_answer = store_user_answer(&mut conn, 1_000, bob, ("qxzebra", "qxzebra"));
    assert!(count_pages_with(&mut conn, "walru") > 0);

    erase_user_content(&mut conn, ann, NOW).unwrap();
    assert_eq!(find_answer_ids(&mut conn, ann, "qxwalrus"), [0_i64; 0]);
    assert!(count_pages_with(&mut conn, "walru") > 0, "no erased word is left in the index");
    while erase_expired_text(&mut conn, NOW, 100, NOW).unwrap() == RetentionProgress::More {}
    assert_eq!(count_pages_with(&mut conn, "walru"), 0);
    assert_eq!(find_answer_ids(&mut conn, bob, "qxzebra"), [bobs_answer]);

    // The erasure of few words overwrites them immediately.
    erase_user_content(&mut conn, bob, NOW).unwrap();
    assert_eq!(count_pages_with(&mut conn, "zebra"), 0);
    conn.batch_execute("INSERT INTO response_words(response_words, rank) VALUES ('integrity-check', 1)")
        .unwrap();
}

/// Checks the words by which the index orders its pages, which remain after their text is overwritten.
#[test]
fn page_terms_of_erased_text_are_removed_by_a_rebuild() {
    let day = SignedDuration::from_hours(24);
    let mut conn = scratch();
    let (ann, bob) = (create_user(&mut conn, 1), create_user(&mut conn, 2));
    // Adjacent rows, so that pages begin with words of each user.
    let store_adjacent_rows = |conn: &mut Conn, first: i64| {
        for n in 0..60 {
            let words = |ending: &str| {
                let numbered = |index| format!("q{}walru{ending}", (n * 150 + index) * 7);
                (0..150).map(numbered).collect::<Vec<_>>().join(" ")
            };
            store_user_answer(conn, first + n, ann, ("qxwalrus", &words("x")));
            store_indexed_answer(
                conn,
                &format!("added:{}", first + n),
                AnswerOwner::User(bob),
                Some(bob),
                ("which", &words("w")),
            );
            text_index::index_new_text(conn).unwrap();
        }
    };
    store_adjacent_rows(&mut conn, 0);
    erase_user_content(&mut conn, ann, NOW).unwrap();
    assert!(count_pages_with(&mut conn, "walrux") > 0, "no erased term is left in the index");
    while erase_expired_text(&mut conn, NOW, 100, NOW).unwrap() == RetentionProgress::More {}
    assert_eq!(count_pages_with(&mut conn, "walrux"), 0);

    store_adjacent_rows(&mut conn, 100);
    conn.batch_execute("UPDATE agent_responses SET agent = 'operator' WHERE user_id = 2").unwrap();
    while erase_expired_text(&mut conn, NOW + day, 100, NOW + day).unwrap() == RetentionProgress::More {}
    assert!(count_pages_with(&mut conn, "walrux") > 0, "no erased term is left in the index");
    while erase_expired_text(&mut conn, NOW + day, 100, NOW + 8 * day).unwrap() == RetentionProgress::More {}
    assert_eq!(count_pages_with(&mut conn, "walrux"), 0);
}

#[test]
fn metadata_is_searchable_until_erased() {
    let mut conn = scratch();
    let ann = create_user(&mut conn, 1);
    let id = store_answer(
        &mut conn,
        "test:1",
        AnswerOwner::User(ann),
        Some(ann),
        ("where do I watch it", "Open Plex."),
    );
    let mut result = indexing_result("", "", MODEL);
    result.source = AnnotationSource::Model;
    result.metadata.keywords = vec!["television".to_owned()];
    indexing_queue::complete_indexing_job(&mut conn, id, &result, NOW).unwrap();
    let find_word = |conn: &mut Conn, word: &str| {
        let owners = search::load_visible_owners(conn, ann).unwrap();
        find_answers_by_words(conn, &owners, &[word.to_owned()], 9).unwrap()
    };
    for word in ["television", "plex", "watch"] {
        assert_eq!(find_word(&mut conn, word), [id], "{word}");
    }
    erase_user_content(&mut conn, ann, NOW).unwrap();
    assert_eq!(find_word(&mut conn, "television"), [0_i64; 0]);
    conn.batch_execute("INSERT INTO response_words(response_words, rank) VALUES ('integrity-check', 1)")
        .unwrap();
}
