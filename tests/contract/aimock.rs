//! A whole conversation with a third-party model server, and the form of its requests.

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::model_conversation::{ANN, KEY, ModelConversation, get, server};

#[tokio::test]
async fn aimock_answers_a_conversation_of_well_formed_requests() -> Result<()> {
    let Some(server) = server("DIALARR_AIMOCK_URL")? else { return Ok(()) };
    let conversation = ModelConversation::start(&server).await?;

    let one_call = conversation.sms("what is downloading").await?;
    let two_calls = conversation.sms("do we have alien and severance").await?;
    let question = conversation.sms("delete alien").await?;
    let no = conversation.sms("no").await?;
    let greeting = conversation.sms("good evening").await?;
    conversation.end().await;

    assert_eq!(one_call, "Dune is the only download and has 40 minutes left.");
    assert_eq!(two_calls, "Yes, both are there.");
    assert!(question.contains("Alien (1979)") && question.contains("YES"), "{question}");
    assert_eq!((no.as_str(), greeting.as_str()), ("OK, kept.", "Good evening."));
    check_journal(&get(&server, "/__aimock/journal").await?)
}

fn check_journal(journal: &Value) -> Result<()> {
    let requests = journal.as_array().context("a journal that is no list")?;
    assert_eq!(
        requests.len(),
        6,
        "two for each question with calls, one for the deletion, one for the greeting"
    );
    for request in requests {
        let body = &request["body"];
        check(request).with_context(|| format!("a request that is not well formed: {body:#}"))?;
    }
    Ok(())
}

fn check(request: &Value) -> Result<()> {
    let body = &request["body"];
    ensure!(request["response"]["status"] == 200, "answered with {}", request["response"]["status"]);
    ensure!(body["stream"] == true, "not streamed");
    let text = body.to_string();
    ensure!(!text.contains(&ANN[2..]), "a phone number");
    ensure!(!text.contains(KEY), "the key");
    check_tools(&body["tools"])?;
    let messages = body["messages"].as_array().context("no messages")?;
    ensure!(messages.first().is_some_and(|first| first["role"] == "system"), "no system message first");
    let last = messages.last().map(|last| &last["role"]);
    ensure!(last.is_some_and(|role| role == "user" || role == "tool"), "nothing to answer");
    check_pairs(messages)
}

fn check_tools(tools: &Value) -> Result<()> {
    let tools = tools.as_array().context("no tools")?;
    ensure!(!tools.is_empty(), "an empty list of tools");
    for tool in tools {
        let function = &tool["function"];
        ensure!(tool["type"] == "function" && function["name"].is_string(), "a tool without a name");
        let parameters = &function["parameters"];
        ensure!(
            parameters["type"] == "object" && parameters["properties"].is_object(),
            "the parameters of {} are no object schema",
            function["name"]
        );
    }
    Ok(())
}

/// Each call has exactly one result before the next response.
fn check_pairs(messages: &[Value]) -> Result<()> {
    let mut open: Vec<&str> = Vec::new();
    let mut seen: Vec<&str> = Vec::new();
    for message in messages {
        let role = message["role"].as_str().context("a message without a role")?;
        if role == "tool" {
            let id = message["tool_call_id"].as_str().context("a result without an id")?;
            let answered = open.iter().position(|call| *call == id).context("a result without a call")?;
            open.remove(answered);
            ensure!(message["content"].is_string(), "a result without a text");
            continue;
        }
        ensure!(open.is_empty(), "calls without results: {open:?}");
        ensure!(["system", "user", "assistant"].contains(&role), "the role {role}");
        let Some(calls) = message.get("tool_calls") else {
            ensure!(message["content"].is_string(), "a message without a text");
            continue;
        };
        ensure!(role == "assistant", "a call by {role}");
        let calls = calls.as_array().context("calls that are no list")?;
        ensure!(!calls.is_empty(), "an empty list of calls");
        for call in calls {
            let id = check_call(call)?;
            ensure!(!seen.contains(&id), "the id {id} twice");
            seen.push(id);
            open.push(id);
        }
    }
    ensure!(open.is_empty(), "calls without results at the end: {open:?}");
    Ok(())
}

fn check_call(call: &Value) -> Result<&str> {
    let id = call["id"].as_str().context("a call without an id")?;
    ensure!(id.len() == 9 && id.bytes().all(|it| it.is_ascii_alphanumeric()), "the id {id}");
    ensure!(call["type"] == "function", "a call of no function");
    let arguments = call["function"]["arguments"].as_str().context("arguments that are no text")?;
    ensure!(serde_json::from_str::<Value>(arguments)?.is_object(), "arguments that are no object");
    Ok(id)
}
