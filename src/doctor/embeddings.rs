//! Check of the embeddings model: availability, and whether it separates related from unrelated sentences.

use tokio::time::Instant;

use super::Finding;
use crate::llm::embeddings::{EmbedError, Embedder};

/// Pairs of sentences with the same meaning. Sentences of different pairs are unrelated.
const SENTENCE_PAIRS: [[&str; 2]; 4] = [
    ["which downloads are running", "show me running downloads"],
    ["delete the old office episodes", "remove old office episodes"],
    ["when does season two of severance come out", "severance season two release date"],
    ["i only want movies in 4k", "get all my movies in 4k only"],
];
/// Recommended margin of the floor above the similarity of unrelated sentences.
const FLOOR_MARGIN: f32 = 0.05;

pub(super) async fn check_embeddings(embedder: Option<&dyn Embedder>, floor: f32) -> Vec<Finding> {
    let Some(embedder) = embedder else {
        return vec![Finding::ok("embeddings: no model is configured; memory uses full-text search only")];
    };
    let name = embedder.model();
    let texts: Vec<String> = SENTENCE_PAIRS.as_flattened().iter().map(|&text| text.to_owned()).collect();
    let started = Instant::now();
    let vectors = match embedder.embed(&texts).await {
        Ok(vectors) => vectors,
        Err(error) => return vec![unusable_embedder(name, &error)],
    };
    let summary = format!(
        "embeddings: {name} returned {} dimensions for {} sentences in {} ms",
        vectors.first().map_or(0, Vec::len),
        texts.len(),
        started.elapsed().as_millis(),
    );
    let (unrelated, related) = similarity_bounds(&vectors);
    vec![Finding::ok(summary), similarity_finding(unrelated, related, floor)]
}

/// Returns the highest similarity of two sentences from different pairs, and the lowest similarity of two sentences
/// from one pair.
fn similarity_bounds(vectors: &[Vec<f32>]) -> (f32, f32) {
    let (mut unrelated, mut related) = (-1.0_f32, 1.0_f32);
    for (index, one) in vectors.iter().enumerate() {
        for (other_index, other) in vectors[..index].iter().enumerate() {
            let similarity: f32 = one.iter().zip(other).map(|(a, b)| a * b).sum();
            if index / 2 == other_index / 2 {
                related = related.min(similarity);
            } else {
                unrelated = unrelated.max(similarity);
            }
        }
    }
    (unrelated, related)
}

fn similarity_finding(unrelated: f32, related: f32, floor: f32) -> Finding {
    let summary = format!(
        "embeddings: similarity of unrelated sentences up to {unrelated:.2}, of related ones at least {related:.2}"
    );
    if related <= unrelated {
        let hint = "choose another EMBEDDINGS_MODEL, or leave it empty for full-text search only";
        return Finding::warning(format!("{summary}: the model cannot tell them apart"), hint);
    }
    let better_floor = (unrelated + FLOOR_MARGIN).min(f32::midpoint(unrelated, related)).max(0.0);
    let hint = format!("set EMBEDDINGS_FLOOR={better_floor:.2}");
    if unrelated >= floor {
        Finding::warning(format!("{summary}, but the floor of {floor:.2} is too low"), hint)
    } else if related < floor {
        Finding::warning(format!("{summary}, but the floor of {floor:.2} is too high"), hint)
    } else {
        Finding::ok(format!("{summary}; the floor is {floor:.2}"))
    }
}

fn unusable_embedder(name: &str, error: &EmbedError) -> Finding {
    let summary = format!("embeddings: {name}: failed to {error}");
    match error {
        EmbedError::RateLimited { .. } => {
            Finding::warning(summary, "try again later, or raise the limit of the key")
        }
        EmbedError::Unavailable(_) | EmbedError::Timeout => Finding::failure(
            summary,
            "check EMBEDDINGS_BASE_URL, and that the server is running; until then, memory uses full-text search only",
        ),
        EmbedError::Unauthorized(_) => Finding::failure(
            summary,
            "check EMBEDDINGS_API_KEY and its permissions; LLM_API_KEY is sent only to the LLM's server",
        ),
        EmbedError::QuotaSpent(_) => Finding::failure(summary, "add credit to the account of the key"),
        EmbedError::Malformed(_) | EmbedError::Rejected(_) | EmbedError::Blank { .. } => Finding::failure(
            summary,
            "check EMBEDDINGS_MODEL, which must be one for embeddings, and that its server has it (ollama pull)",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::FindingGrade;
    use crate::llm::embeddings::hashing::HashingEmbedder;

    #[track_caller]
    fn check_floor(unrelated: f32, related: f32, floor: f32, expected: (FindingGrade, Option<&str>)) {
        let finding = similarity_finding(unrelated, related, floor);
        assert_eq!((finding.grade, finding.hint.as_deref()), expected, "{}", finding.summary);
    }

    #[test]
    fn unsuitable_similarity_floor_is_reported_with_a_better_one() {
        check_floor(0.21, 0.80, 0.30, (FindingGrade::Ok, None));
        check_floor(0.47, 0.80, 0.30, (FindingGrade::Warning, Some("set EMBEDDINGS_FLOOR=0.52")));
        check_floor(0.70, 0.74, 0.30, (FindingGrade::Warning, Some("set EMBEDDINGS_FLOOR=0.72")));
        check_floor(0.10, 0.25, 0.30, (FindingGrade::Warning, Some("set EMBEDDINGS_FLOOR=0.15")));
        check_floor(-0.2, 0.25, 0.30, (FindingGrade::Warning, Some("set EMBEDDINGS_FLOOR=0.00")));
        let hint = "choose another EMBEDDINGS_MODEL, or leave it empty for full-text search only";
        check_floor(0.90, 0.80, 0.30, (FindingGrade::Warning, Some(hint)));
    }

    #[tokio::test]
    async fn hashing_embedder_separates_the_sentences() {
        let findings = check_embeddings(Some(&HashingEmbedder), 0.30).await;
        insta::assert_snapshot!(findings[1].summary, @"embeddings: similarity of unrelated sentences up to 0.14, of related ones at least 0.56; the floor is 0.30");
    }
}
