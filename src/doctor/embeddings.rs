//! Check of the embeddings model: availability, and high similarity of texts with the same meaning.

use tokio::time::Instant;

use super::Finding;
use crate::llm::embeddings::{EmbedError, Embedder};

/// Pairs of sentences: each pair has one meaning in two wordings, and no pair is related to another.
const PAIRS: [[&str; 2]; 4] = [
    ["which downloads are running", "show me running downloads"],
    ["delete the old office episodes", "remove old office episodes"],
    ["when does season two of severance come out", "severance season two release date"],
    ["i only want movies in 4k", "get all my movies in 4k only"],
];
/// Recommended margin of the floor above the similarity of unrelated sentences.
const MARGIN: f32 = 0.05;

pub(super) async fn check_embeddings(embedder: Option<&dyn Embedder>, floor: f32) -> Vec<Finding> {
    let Some(embedder) = embedder else {
        return vec![Finding::ok("embeddings: no model is configured, memory is searched by words")];
    };
    let name = embedder.model();
    let texts: Vec<String> = PAIRS.as_flattened().iter().map(|&text| text.to_owned()).collect();
    let asked = Instant::now();
    let vectors = match embedder.embed(&texts).await {
        Ok(vectors) => vectors,
        Err(error) => return vec![unusable_embedder(name, &error)],
    };
    let answers = format!(
        "embeddings: {name} answers with {} dimensions, {} sentences in {} ms",
        vectors.first().map_or(0, Vec::len),
        texts.len(),
        asked.elapsed().as_millis(),
    );
    let (strangers, kin) = mean_similarities(&vectors);
    vec![Finding::ok(answers), similarity_finding(strangers, kin, floor)]
}

/// Returns the highest similarity of two sentences from different pairs, and the lowest similarity of two sentences
/// from one pair.
fn mean_similarities(vectors: &[Vec<f32>]) -> (f32, f32) {
    let (mut strangers, mut kin) = (-1.0_f32, 1.0_f32);
    for (at, one) in vectors.iter().enumerate() {
        for (before, other) in vectors[..at].iter().enumerate() {
            let alike: f32 = one.iter().zip(other).map(|(a, b)| a * b).sum();
            if at / 2 == before / 2 {
                kin = kin.min(alike);
            } else {
                strangers = strangers.max(alike);
            }
        }
    }
    (strangers, kin)
}

fn similarity_finding(strangers: f32, kin: f32, floor: f32) -> Finding {
    let summary =
        format!("embeddings: unrelated sentences are up to {strangers:.2} alike, related ones {kin:.2}");
    if kin <= strangers {
        let hint = "set EMBEDDINGS_MODEL to another one; until then leave it empty, and words are searched";
        return Finding::warning(format!("{summary}: it cannot tell them apart"), hint);
    }
    let better = (strangers + MARGIN).min(f32::midpoint(strangers, kin)).max(0.0);
    let hint = format!("set EMBEDDINGS_FLOOR={better:.2}");
    if strangers >= floor {
        Finding::warning(format!("{summary}, but {floor:.2} is enough to be remembered by"), hint)
    } else if kin < floor {
        Finding::warning(format!("{summary}, but {floor:.2} is needed to be remembered by"), hint)
    } else {
        Finding::ok(format!("{summary}; the floor is {floor:.2}"))
    }
}

fn unusable_embedder(name: &str, error: &EmbedError) -> Finding {
    let what = format!("embeddings: {name}: failed to {error}");
    match error {
        EmbedError::RateLimited { .. } => {
            Finding::warning(what, "try again later, or raise the limit of the key")
        }
        EmbedError::Unavailable(_) | EmbedError::Timeout => Finding::failure(
            what,
            "check EMBEDDINGS_BASE_URL, and whether the server runs; until then words are searched",
        ),
        EmbedError::Unauthorized(_) => Finding::failure(
            what,
            "check EMBEDDINGS_API_KEY and what it may use; LLM_API_KEY goes to the LLM's own server alone",
        ),
        EmbedError::QuotaSpent(_) => Finding::failure(what, "add credit to the account of the key"),
        EmbedError::Malformed(_) | EmbedError::Rejected(_) | EmbedError::Blank { .. } => Finding::failure(
            what,
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
    fn check_floor(strangers: f32, kin: f32, floor: f32, expected: (FindingGrade, Option<&str>)) {
        let finding = similarity_finding(strangers, kin, floor);
        assert_eq!((finding.grade, finding.hint.as_deref()), expected, "{}", finding.what);
    }

    #[test]
    fn unsuitable_similarity_floor_is_reported_with_a_better_one() {
        check_floor(0.21, 0.80, 0.30, (FindingGrade::Ok, None));
        check_floor(0.47, 0.80, 0.30, (FindingGrade::Warning, Some("set EMBEDDINGS_FLOOR=0.52")));
        check_floor(0.70, 0.74, 0.30, (FindingGrade::Warning, Some("set EMBEDDINGS_FLOOR=0.72")));
        check_floor(0.10, 0.25, 0.30, (FindingGrade::Warning, Some("set EMBEDDINGS_FLOOR=0.15")));
        check_floor(-0.2, 0.25, 0.30, (FindingGrade::Warning, Some("set EMBEDDINGS_FLOOR=0.00")));
        let other = "set EMBEDDINGS_MODEL to another one; until then leave it empty, and words are searched";
        check_floor(0.90, 0.80, 0.30, (FindingGrade::Warning, Some(other)));
    }

    #[tokio::test]
    async fn hashing_embedder_separates_the_sentences() {
        let findings = check_embeddings(Some(&HashingEmbedder), 0.30).await;
        insta::assert_snapshot!(findings[1].what, @"embeddings: unrelated sentences are up to 0.14 alike, related ones 0.56; the floor is 0.30");
    }
}
