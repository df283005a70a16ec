//! A turn with a server whose streams are malformed: both calls have index 0, and no stream marks its end.

use anyhow::Result;

use crate::model_conversation::{ModelConversation, server};

#[tokio::test]
async fn interleaved_streamed_calls_are_separated() -> Result<()> {
    let Some(server) = server("DIALARR_STUBLLM_URL")? else { return Ok(()) };
    let conversation = ModelConversation::start(&server).await?;
    let answer = conversation.sms("do we have alien and severance").await?;
    conversation.end().await;
    assert_eq!(answer, "Yes, both are there.");
    Ok(())
}
