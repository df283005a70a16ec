//! Feature-hashing embedder for the demo and tests. It needs no server and computes the same vectors on every machine.
//! The vectors reflect spelling, not meaning: "movie" is similar to "movies", but not to "film".

use async_trait::async_trait;
use sha2::{Digest, Sha256};

use super::{EmbedError, Embedder, vector_checks};
use crate::conversation::text::normalization::normalize_title;

/// Number of dimensions: one for each value of a byte.
const DIMENSIONS: usize = 256;
/// Weight of a word. A shared word makes two texts more similar than a shared trigram.
const WORD_WEIGHT: f32 = 1.0;
const TRIGRAM_WEIGHT: f32 = 0.5;

/// Embedder that hashes each word and its trigrams to a dimension and a sign.
#[derive(Debug, Clone, Copy)]
pub struct HashingEmbedder;

#[async_trait]
impl Embedder for HashingEmbedder {
    fn model(&self) -> &'static str {
        "hashing-256"
    }

    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbedError> {
        vector_checks::check_not_blank(texts)?;
        Ok(texts.iter().map(|text| hash_text(text)).collect())
    }
}

fn hash_text(text: &str) -> Vec<f32> {
    let normalized = normalize_title(text);
    // A text of only emoji normalizes to nothing, but still gets its own vector.
    let words = if normalized.is_empty() { text.trim() } else { &normalized };
    let mut sums = vec![0.0; DIMENSIONS];
    let mut add = |feature: &str, weight: f32| {
        let hash = Sha256::digest(feature);
        sums[usize::from(hash[0])] += if hash[1] % 2 == 0 { weight } else { -weight };
    };
    for word in words.split_whitespace() {
        add(word, WORD_WEIGHT);
        let letters: Vec<char> = format!(" {word} ").chars().collect();
        for trigram in letters.windows(3) {
            add(&trigram.iter().collect::<String>(), TRIGRAM_WEIGHT);
        }
    }
    // Opposite signs may cancel out and leave a zero vector.
    vector_checks::normalize_vector(sums)
        .unwrap_or_else(|| (0..DIMENSIONS).map(|index| if index == 0 { 1.0 } else { 0.0 }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn similarity(one: &str, other: &str) -> f32 {
        hash_text(one).iter().zip(hash_text(other)).map(|(a, b)| a * b).sum()
    }

    #[tokio::test]
    async fn embeddings_are_deterministic_unit_vectors() {
        let texts = ["add Dune", "\u{1F3AC}"].map(str::to_owned);
        let vectors = HashingEmbedder.embed(&texts).await.unwrap();
        assert_eq!(vectors.iter().map(Vec::len).collect::<Vec<_>>(), [256, 256]);
        for vector in &vectors {
            let length: f32 = vector.iter().map(|value| value * value).sum();
            assert!((length - 1.0).abs() < 1e-5, "{length}");
        }
        let nonzero = |vector: &[f32]| {
            let values = vector.iter().enumerate().filter(|(_, value)| **value != 0.0);
            values.map(|(index, value)| format!("{index}:{value:.4}")).collect::<Vec<_>>().join(" ")
        };
        insta::assert_snapshot!(nonzero(&vectors[0]), @"82:-0.2294 85:-0.2294 91:-0.2294 126:0.6882 140:-0.2294 162:0.2294 171:0.4588 180:0.2294");
    }

    #[test]
    fn shared_words_and_letters_are_similar() {
        assert!(similarity("Add Dünë!", "add dune") > 0.999);
        assert!(similarity("add interstellar", "is interstellar there") > 0.5);
        assert!(similarity("the old movies", "an old movie") > 0.3);
        assert!(similarity("add interstellar", "what is the weather like") < 0.2);
        assert!(similarity("delete the office", "i only want 4k") < 0.2);
    }

    #[tokio::test]
    async fn blank_text_is_reported_by_its_index() {
        let texts = ["add Dune", " \n"].map(str::to_owned);
        assert_eq!(HashingEmbedder.embed(&texts).await, Err(EmbedError::Blank { text: 1 }));
    }
}
