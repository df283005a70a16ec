//! Votes: in a group with a native poll, and in the private chats of the household.

use dialarr::arr::fake::media_fixtures::movie;
use dialarr::messaging::telegram::fake::FakePoll;
use http::StatusCode;
use serde_json::json;

use crate::harness::model::{calls, removes_movie, says};
use crate::harness::room::{BOB_ACCOUNT, FAMILY, STRANGER};
use crate::harness::telegram::ANN_ACCOUNT;
use crate::harness::world::World;

const QUESTION: &str = "What should we watch?";
const TWO_HOURS: u64 = 2 * 3600;
const START: &str = "@home_bot vote dune, heat, alien";

impl World {
    /// Returns the message with the newest poll in the group, and the poll.
    fn newest_poll(&self) -> (i64, FakePoll) {
        let newest = self.telegram().sent_messages().into_iter().rev();
        newest.filter_map(|sent| Some((sent.message_id, sent.poll?))).next().unwrap()
    }

    /// Starts a vote in the group, and returns the message of its poll.
    async fn start_vote_in_room(&self) -> i64 {
        self.write_in_room(ANN_ACCOUNT, START).await;
        self.newest_poll().0
    }

    /// Lets a person answer a poll in the group by the position of an option.
    async fn vote(&self, person: i64, message: i64, options: &[usize]) {
        assert!(self.telegram().vote(person, FAMILY, message, options), "the poll is open");
        self.pass(5).await;
    }

    /// Lets a person write to the bot, and returns the last text to the person.
    async fn write_privately(&self, person: i64, body: &str) -> String {
        self.telegram().text(person, body);
        self.pass(20).await;
        self.telegram().texts_to(person).pop().unwrap()
    }
}

#[tokio::test(start_paused = true)]
async fn vote_in_a_group_is_a_poll_whose_result_is_announced_once() {
    let world = World::start_in_room().await;
    let message = world.start_vote_in_room().await;
    let (_, poll) = world.newest_poll();
    assert_eq!(
        (poll.question.as_str(), poll.options.as_slice()),
        (QUESTION, ["dune", "heat", "alien"].map(str::to_owned).as_slice())
    );
    assert!(!poll.is_anonymous);
    world.vote(ANN_ACCOUNT, message, &[0]).await;
    world.vote(BOB_ACCOUNT, message, &[1]).await;
    world.vote(STRANGER, message, &[1]).await;
    // A choice can be changed and withdrawn while the vote is open.
    world.vote(ANN_ACCOUNT, message, &[2]).await;
    world.vote(STRANGER, message, &[]).await;
    world.vote(STRANGER, message, &[1]).await;
    world.pass(TWO_HOURS).await;
    let result = "What should we watch? heat wins with 2 of 3 votes. Others: alien 1.";
    assert_eq!(world.answers_in_room().split_off(1), [result]);
    assert_eq!(world.newest_in_room().reply_to, Some(message));
    assert!(world.newest_poll().1.is_closed);
    world.pass(TWO_HOURS).await;
    assert_eq!(world.answers_in_room().len(), 2);
    assert_eq!(world.lines("SELECT guest AS line FROM ballots WHERE guest IS NOT NULL").await, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn vote_survives_restarts_and_ends_while_the_program_is_down() {
    let mut world = World::start_in_room().await;
    let message = world.start_vote_in_room().await;
    world.vote(ANN_ACCOUNT, message, &[1]).await;
    world.kill().await;
    assert!(world.telegram().vote(BOB_ACCOUNT, FAMILY, message, &[1]));
    world.start_again().await;
    world.pass(20).await;
    world.kill().await;
    world.pass(TWO_HOURS).await;
    world.start_again().await;
    world.pass(60).await;
    assert_eq!(world.answers_in_room().split_off(1), ["What should we watch? heat wins with 2 of 2 votes."]);
    world.kill().await;
    world.start_again().await;
    world.pass(60).await;
    assert_eq!(world.answers_in_room().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn poll_whose_answer_was_lost_still_counts() {
    let world = World::start_in_room().await;
    world.telegram().lose_answers(1);
    world.write_in_room(ANN_ACCOUNT, START).await;
    world.pass(120).await;
    let polls: Vec<i64> = world
        .telegram()
        .sent_messages()
        .into_iter()
        .filter(|sent| sent.poll.is_some())
        .map(|sent| sent.message_id)
        .collect();
    assert_eq!(polls.len(), 2, "a poll whose answer is lost is sent once more");
    world.vote(ANN_ACCOUNT, polls[0], &[1]).await;
    world.vote(BOB_ACCOUNT, polls[1], &[1]).await;
    // The same person counts once.
    world.vote(BOB_ACCOUNT, polls[0], &[0]).await;
    world.write_in_room(ANN_ACCOUNT, "@home_bot close vote").await;
    let result = world.answers_in_room().pop().unwrap();
    assert_eq!(result, "What should we watch? It is a tie between dune and heat with 1 vote each.");
}

#[tokio::test(start_paused = true)]
async fn only_the_starter_or_an_admin_closes_a_vote_early() {
    let world = World::start_in_room().await;
    world.write_in_room(BOB_ACCOUNT, START).await;
    world.write_in_room(ANN_ACCOUNT, "@home_bot vote 2").await;
    let answer = world.answers_in_room().pop().unwrap();
    assert!(answer.starts_with("OK, your vote is heat. You can change it until "), "{answer}");
    assert_eq!(
        world.write_in_room(ANN_ACCOUNT, START).await.pop().unwrap(),
        "There is a vote already. Text VOTE to see it, or CLOSE VOTE to close it."
    );
    let state = world.write_in_room(ANN_ACCOUNT, "@home_bot vote").await.pop().unwrap();
    assert!(state.contains("\n1. dune (0 votes)\n2. heat (1 vote, your vote)\n"), "{state}");
    let answers = world.write_in_room(ANN_ACCOUNT, "@home_bot close vote").await;
    assert_eq!(answers.last().unwrap(), "What should we watch? heat wins with 1 of 1 vote.");
    world.write_in_room(ANN_ACCOUNT, "@home_bot vote dune or heat").await;
    let answers = world.write_in_room(BOB_ACCOUNT, "@home_bot close vote").await;
    assert_eq!(answers.last().unwrap(), "Only the person who started the vote or an admin can close it.");
}

#[tokio::test(start_paused = true)]
async fn model_starts_a_vote_in_a_group_and_nowhere_else() {
    let world = World::start_in_room().await;
    let vote = json!({ "options": ["Dune", "Heat"] });
    world.model_plays([calls("start_vote", vote.clone()), says("Let us see.")]);
    world.write_in_room(ANN_ACCOUNT, "@home_bot let us decide between dune and heat").await;
    assert_eq!(world.newest_poll().1.options, ["Dune", "Heat"]);
    world.model_plays([calls("start_vote", vote.clone()), says("Done.")]);
    world.write_in_room(BOB_ACCOUNT, "@home_bot let us decide again").await;
    let polls = world.telegram().sent_messages().into_iter().filter(|sent| sent.poll.is_some()).count();
    let told = world.answers_in_room().iter().any(|text| text.starts_with("There is a vote already."));
    assert_eq!((polls, told), (1, true));
    world.model_plays([calls("start_vote", vote), says("I can't do that here.")]);
    world.text_to_bot("let us decide between dune and heat").await;
    assert!(!format!("{:?}", world.last_request()).contains("Let the group vote"));
    assert_eq!(world.lines("SELECT id AS line FROM votes").await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn household_is_asked_in_private_chats_and_votes_by_number_or_button() {
    let mut world = World::start_with_bot().await;
    world.make_admin(ANN_ACCOUNT).await;
    for (person, name) in [(ANN_ACCOUNT, "Ann"), (BOB_ACCOUNT, "Bob"), (STRANGER, "Cy")] {
        world.register(person, name).await;
        world.telegram().start_bot(person, "");
    }
    world.pass(20).await;
    let reply = world.write_privately(ANN_ACCOUNT, "vote dune, heat").await;
    let question = "What should we watch?\n1. dune\n2. heat\nReply VOTE and a number until ";
    assert!(reply.starts_with(&format!("I asked Bob and Cy. {question}")), "{reply}");
    let asked = world.telegram().texts_to(BOB_ACCOUNT).pop().unwrap();
    assert!(asked.starts_with(&format!("Ann asks: {question}")), "{asked}");
    assert!(world.write_privately(BOB_ACCOUNT, "2").await.starts_with("OK, your vote is heat."));
    world.kill().await;
    world.start_again().await;
    world.pass(5).await;
    let message =
        world.telegram().sent_messages().into_iter().rfind(|sent| sent.chat_id == STRANGER).unwrap();
    world.write_privately(STRANGER, "status").await;
    assert!(world.telegram().press(STRANGER, STRANGER, message.message_id, "1"));
    world.pass(20).await;
    assert!(world.telegram().texts_to(STRANGER).pop().unwrap().starts_with("OK, your vote is dune."));
    // The last awaited vote closes.
    world.write_privately(ANN_ACCOUNT, "vote for heat").await;
    for person in [ANN_ACCOUNT, BOB_ACCOUNT, STRANGER] {
        let result = world.telegram().texts_to(person).pop().unwrap();
        assert_eq!(result, "What should we watch? heat wins with 2 of 3 votes. Others: dune 1.");
    }
    let button = &message.buttons[0][1];
    world.telegram().press_data(STRANGER, STRANGER, message.message_id, &button.data);
    world.pass(20).await;
    let late = world.telegram().texts_to(STRANGER).pop().unwrap();
    assert_eq!(late, "That button belongs to an earlier message, so nothing was done.");
}

#[tokio::test(start_paused = true)]
async fn person_in_quiet_hours_or_without_notifications_is_not_asked() {
    let world = World::start_with_bot().await;
    for (person, name) in [(ANN_ACCOUNT, "Ann"), (BOB_ACCOUNT, "Bob")] {
        world.register(person, name).await;
        world.telegram().start_bot(person, "");
    }
    world.pass(20).await;
    world.write_privately(BOB_ACCOUNT, "notify off").await;
    let nobody = "There is nobody else to ask right now.";
    assert_eq!(world.write_privately(ANN_ACCOUNT, "vote dune, heat").await, nobody);
    world.write_privately(BOB_ACCOUNT, "notify on").await;
    let hour = world.now().to_zoned(jiff::tz::TimeZone::UTC).hour();
    world.write_privately(BOB_ACCOUNT, &format!("quiet {hour}-{}", (hour + 3) % 24)).await;
    assert_eq!(world.write_privately(ANN_ACCOUNT, "vote dune, heat").await, nobody);
    assert_eq!(world.lines("SELECT id AS line FROM votes").await.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn vote_answers_no_confirmation_prompt() {
    let world = World::start_in_room().await;
    let heat = world.radarr().add(movie("Heat").year(1995).size_gb(18.2));
    world.start_vote_in_room().await;
    world.model_plays(removes_movie("heat", heat));
    world.write_in_room(ANN_ACCOUNT, "@home_bot delete heat").await;
    let (poll, _) = world.newest_poll();
    world.vote(ANN_ACCOUNT, poll, &[1]).await;
    let answers = world.write_in_room(ANN_ACCOUNT, "@home_bot vote yes, no").await;
    assert!(
        answers.last().unwrap().contains("I can't hold a vote about yes, no or a command."),
        "{answers:?}"
    );
    world.pass(TWO_HOURS).await;
    assert!(world.radarr().removed_ids().is_empty());
}

#[tokio::test(start_paused = true)]
async fn forget_all_erases_the_votes_and_the_choices_of_a_person() {
    let world = World::start_in_room().await;
    let message = world.start_vote_in_room().await;
    world.vote(BOB_ACCOUNT, message, &[0]).await;
    world.write_privately(BOB_ACCOUNT, "forget all").await;
    assert_eq!(world.lines("SELECT id AS line FROM ballots").await.len(), 0);
    assert_eq!(world.lines("SELECT id AS line FROM votes").await.len(), 1);
    world.write_privately(ANN_ACCOUNT, "forget all").await;
    assert_eq!(world.lines("SELECT id AS line FROM votes").await.len(), 0);
    world.pass(TWO_HOURS).await;
    assert_eq!(world.answers_in_room().len(), 1, "nothing is announced");
}

#[tokio::test(start_paused = true)]
async fn answers_to_a_poll_arrive_by_webhook() {
    let world = World::start_with_bot_and_webhook().await;
    let (_, secret) = world.telegram().webhook().unwrap();
    world.register_household().await;
    world.telegram().create_group(FAMILY, &[ANN_ACCOUNT, BOB_ACCOUNT]);
    world.telegram().add_bot_to_group(FAMILY, ANN_ACCOUNT);
    world.deliver_updates(&secret).await;
    world.telegram().group_text(FAMILY, ANN_ACCOUNT, START);
    world.deliver_updates(&secret).await;
    assert!(world.telegram().vote(BOB_ACCOUNT, FAMILY, world.newest_poll().0, &[2]));
    assert_eq!(world.deliver_updates(&secret).await, [(StatusCode::OK, String::new())]);
    world.telegram().group_text(FAMILY, ANN_ACCOUNT, "@home_bot close vote");
    world.deliver_updates(&secret).await;
    assert_eq!(world.answers_in_room().pop().unwrap(), "What should we watch? alien wins with 1 of 1 vote.");
}

#[tokio::test(start_paused = true)]
async fn answer_that_is_delivered_again_after_a_later_one_changes_nothing() {
    let world = World::start_in_room().await;
    let message = world.start_vote_in_room().await;
    world.vote(BOB_ACCOUNT, message, &[0]).await;
    assert!(world.telegram().vote(BOB_ACCOUNT, FAMILY, message, &[1]));
    world.telegram().repeat_updates(1);
    world.pass(5).await;
    assert!(world.telegram().vote(BOB_ACCOUNT, FAMILY, message, &[]));
    world.telegram().repeat_updates(2);
    world.pass(5).await;
    let choices =
        "SELECT coalesce(choice, 'none') || ' ' || (SELECT count(*) FROM ballots) AS line FROM ballots";
    assert_eq!(world.lines(choices).await, ["none 1"]);
    world.vote(BOB_ACCOUNT, message, &[2]).await;
    assert!(world.telegram().vote(BOB_ACCOUNT, FAMILY, message, &[1]));
    world.telegram().repeat_updates(1);
    world.pass(5).await;
    assert_eq!(world.lines(choices).await, ["2 1"]);
}
