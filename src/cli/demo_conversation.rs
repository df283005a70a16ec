//! Conversation of `dialarr demo`: typed lines go to the program as texts, and its replies are printed.

use std::path::Path;

use anyhow::Context;
use http::StatusCode;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;

use super::demo::ADMIN_PHONE;
use super::demo_output::DemoOutput;
use super::serve::StopSignals;
use super::{chat, demo_phone};
use crate::app::App;
use crate::http::HttpClient;
use crate::messaging::smsgate::fake::{FakePhone, RadioedText};
use crate::messaging::twilio::fake::{FakeDelivery, FakeTwilio, SentMessage};

/// Answer to `help`, which is not sent as a text.
const HELP: &str = "\
You are texting as an admin. Try:
  status                     what is downloading
  add the lion king          two movies have this title, so it asks which
  when is severance back     the next episode
  remove heat                it asks before it deletes
  @2 hello                   a text from another phone, which an admin has to let in
  commands                   all commands that can be texted
Ctrl-D exits.";

/// Typed line: `add dune` comes from the admin, and `@2 add dune` from another number.
struct DemoLine<'a> {
    from: String,
    body: &'a str,
}

impl<'a> DemoLine<'a> {
    fn parse(line: &'a str) -> Self {
        let other = line.strip_prefix('@').and_then(|rest| rest.split_once(' '));
        match other.and_then(|(phone, body)| Some((phone.parse::<u8>().ok()?, body))) {
            Some((phone @ 2..=9, body)) => Self { from: format!("+1555010010{phone}"), body },
            _ => Self { from: ADMIN_PHONE.to_owned(), body: line },
        }
    }
}

/// Prints replies while lines are typed, or until a signal.
pub(super) async fn run_conversation(
    carrier: &DemoCarrier,
    app: &App,
    replies: Receiver<SentMessage>,
    no_prompt: bool,
) -> anyhow::Result<()> {
    let stop_replies = CancellationToken::new();
    let output = carrier.output;
    let reply_task = match &carrier.phone {
        Some(phone) => {
            let print_text = move |text: &RadioedText| output.print_text(&text.to, &text.body);
            let texts = demo_phone::print_texts(phone.clone(), print_text, stop_replies.clone());
            tokio::spawn(async move {
                texts.await;
                Ok(())
            })
        }
        None => tokio::spawn(print_replies(carrier.clone(), replies, stop_replies.clone())),
    };
    if no_prompt {
        StopSignals::listen()?.wait_for_signal().await;
    } else {
        run_prompt(carrier).await?;
        carrier.wait_for_replies(app).await?;
    }
    // The task reports deliveries to the webhook, so it stops before the listeners.
    stop_replies.cancel();
    reply_task.await.context("print the replies")?
}

/// Simulated Twilio and the client with which it calls the webhook, or a simulated phone.
#[derive(Clone)]
pub(super) struct DemoCarrier {
    pub(super) twilio: FakeTwilio,
    pub(super) phone: Option<FakePhone>,
    pub(super) webhook: HttpClient,
    pub(super) output: DemoOutput,
    /// Line above the prompt.
    pub(super) invitation: &'static str,
    /// Advice after a text that the webhook has refused.
    pub(super) refusal_hint: &'static str,
}

impl DemoCarrier {
    /// Delivers a typed line as a text, and returns the status of the webhook's response.
    async fn send_text(&self, line: &str) -> anyhow::Result<StatusCode> {
        let DemoLine { from, body } = DemoLine::parse(line);
        if let Some(phone) = &self.phone {
            phone.receive_text(&from, body);
            return Ok(StatusCode::OK);
        }
        let request = self
            .twilio
            .inbound_form(&from, body)
            .into_signed_request()
            .context("build the webhook request")?;
        let response = FakeTwilio::deliver_request(request, &self.webhook)
            .await
            .context("send the request to the webhook")?;
        Ok(response.status())
    }

    /// Waits until all messages are answered and the replies are sent.
    async fn wait_for_replies(&self, app: &App) -> anyhow::Result<()> {
        if let Some(phone) = &self.phone {
            demo_phone::wait_until_read(phone).await;
        }
        app.engine.scheduler.wait_until_idle().await;
        app.relay.wait_until_settled().await?;
        if let Some(phone) = &self.phone {
            demo_phone::wait_until_read(phone).await;
        }
        Ok(())
    }

    /// Prints a reply and reports its delivery to the webhook.
    async fn print_reply(&self, sent: &SentMessage) -> anyhow::Result<()> {
        self.output.print_text(sent.to.as_str(), &sent.body);
        for delivery in [FakeDelivery::Sent, FakeDelivery::Delivered] {
            if let Some(request) =
                self.twilio.status_callback(sent, delivery).context("build the status callback")?
            {
                FakeTwilio::deliver_request(request, &self.webhook)
                    .await
                    .context("send the request to the webhook")?;
            }
        }
        Ok(())
    }
}

async fn print_replies(
    carrier: DemoCarrier,
    mut replies: Receiver<SentMessage>,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    loop {
        let sent = tokio::select! {
            biased;
            sent = replies.recv() => sent,
            () = stop.cancelled() => return Ok(()),
        };
        match sent {
            Ok(sent) => carrier.print_reply(&sent).await?,
            Err(RecvError::Lagged(missed)) => eprintln!("({missed} replies were not shown)"),
            Err(RecvError::Closed) => return Ok(()),
        }
    }
}

async fn run_prompt(carrier: &DemoCarrier) -> anyhow::Result<()> {
    eprintln!("{}", carrier.invitation);
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    let mut signals = StopSignals::listen()?;
    carrier.output.print_prompt();
    while let Some(line) = chat::next_line(&mut lines, &mut signals).await? {
        match line.trim() {
            "" => {}
            "help" => eprintln!("{HELP}"),
            _ => {
                let status = carrier.send_text(&line).await?;
                if !status.is_success() {
                    eprintln!("Not delivered: the webhook answers {status}. {}", carrier.refusal_hint);
                }
            }
        }
        carrier.output.print_prompt();
    }
    Ok(())
}

/// Sends the lines of a file as messages, each after the previous one was answered.
#[expect(clippy::print_stdout, reason = "the command prints the conversation")]
pub(super) async fn run_script(
    carrier: &DemoCarrier,
    app: &App,
    mut replies: Receiver<SentMessage>,
    script: &Path,
) -> anyhow::Result<()> {
    let lines =
        tokio::fs::read_to_string(script).await.with_context(|| format!("read {}", script.display()))?;
    let mut printed = 0;
    for line in lines.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
        println!("you: {line}");
        let status = carrier.send_text(line).await?;
        anyhow::ensure!(status.is_success(), "deliver the text to the webhook: {status}");
        carrier.wait_for_replies(app).await?;
        // All replies to the message are sent by now, so they are printed below it.
        while let Ok(sent) = replies.try_recv() {
            carrier.print_reply(&sent).await?;
        }
        if let Some(phone) = &carrier.phone {
            let texts = phone.radioed_texts();
            texts.iter().skip(printed).for_each(|text| carrier.output.print_text(&text.to, &text.body));
            printed = texts.len();
        }
    }
    Ok(())
}
