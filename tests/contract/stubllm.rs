//! Whether a turn comes through with a server whose streams are wrong: both calls have index 0, and no stream tells its end.

use anyhow::Result;

use crate::talk::{Talk, server};

#[tokio::test]
async fn interleaved_streamed_calls_are_separated() -> Result<()> {
    let Some(server) = server("DIALARR_STUBLLM_URL")? else { return Ok(()) };
    let talk = Talk::start(&server).await?;
    let answer = talk.sms("do we have alien and severance").await?;
    talk.end().await;
    assert_eq!(answer, "Yes, both are there.");
    Ok(())
}
