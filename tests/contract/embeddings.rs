//! Whether vectors of a real model come back as they were asked for, and are as alike as their texts.

use anyhow::{Context, Result, ensure};
use dialarr::http::install_tls;
use dialarr::llm::embeddings::openai::OpenAiEmbedder;
use dialarr::llm::embeddings::{EmbedError, Embedder};

use crate::talk::{KEY, server};

const VARIABLE: &str = "DIALARR_EMBEDDINGS_URL";

/// The model behind the server that the environment names.
fn model() -> Result<Option<OpenAiEmbedder>> {
    let Some(server) = server(VARIABLE)? else { return Ok(None) };
    install_tls();
    let name = "all-minilm-l6-v2".to_owned();
    Ok(Some(OpenAiEmbedder::new(&server.join("/v1")?, Some(KEY.into()), name)?))
}

/// The cosine, since both have unit length.
fn likeness(one: &[f32], other: &[f32]) -> f32 {
    one.iter().zip(other).map(|(a, b)| a * b).sum()
}

#[tokio::test]
async fn vectors_of_a_real_model_keep_the_order_and_the_likeness_of_their_texts() -> Result<()> {
    let Some(model) = model()? else { return Ok(()) };
    let texts =
        ["delete game of thrones", "do not delete game of thrones", "add interstellar", "i only want 4k"]
            .map(str::to_owned);

    let vectors = model.embed(&texts).await?;

    ensure!(vectors.len() == texts.len(), "{} vectors", vectors.len());
    for (text, vector) in texts.iter().zip(&vectors) {
        ensure!(vector.len() == 384, "{text}: {} dimensions", vector.len());
        let length = likeness(vector, vector);
        ensure!((length - 1.0).abs() < 1e-5, "{text}: length {length}");
        let alone = model.embed(std::slice::from_ref(text)).await?.pop().context("a vector")?;
        ensure!(likeness(vector, &alone) > 0.999, "{text}: another vector when it is asked for alone");
    }
    let contrary = likeness(&vectors[0], &vectors[1]);
    ensure!(contrary > 0.9, "a sentence and its opposite are {contrary} alike");
    let unrelated = likeness(&vectors[2], &vectors[3]);
    ensure!(unrelated < 0.3, "a wish and a preference are {unrelated} alike");
    Ok(())
}

#[tokio::test]
async fn what_has_no_words_is_taken_and_what_is_blank_is_not_sent() -> Result<()> {
    let Some(model) = model()? else { return Ok(()) };
    let vectors = model.embed(&["\u{1F3AC}".to_owned(), "?".to_owned()]).await?;
    ensure!(vectors.iter().all(|vector| vector.len() == 384));
    let blank = model.embed(&["  ".to_owned()]).await;
    ensure!(blank == Err(EmbedError::Blank { text: 0 }), "a blank text got {blank:?}");
    Ok(())
}
