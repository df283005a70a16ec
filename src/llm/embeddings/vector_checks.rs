//! Checks of the texts to embed, and checks and normalization of the returned vectors.

use super::EmbedError;

/// Maximum number of dimensions. No embeddings model returns longer vectors.
const MAX_DIMENSIONS: usize = 4_096;

/// Checks that no text is blank.
pub(super) fn check_not_blank(texts: &[String]) -> Result<(), EmbedError> {
    match texts.iter().position(|text| text.trim().is_empty()) {
        Some(text) => Err(EmbedError::Blank { text }),
        None => Ok(()),
    }
}

/// Normalizes the vectors to unit length. Fails if their numbers of dimensions differ or a vector has no direction.
pub(super) fn normalize_vectors(vectors: Vec<Vec<f32>>) -> Result<Vec<Vec<f32>>, EmbedError> {
    let dimensions = vectors.first().map_or(0, Vec::len);
    if dimensions > MAX_DIMENSIONS {
        return Err(EmbedError::Malformed(format!("more than {MAX_DIMENSIONS} dimensions")));
    }
    if vectors.iter().any(|vector| vector.len() != dimensions) {
        return Err(EmbedError::Malformed("the vectors have different lengths".to_owned()));
    }
    let normalized: Option<Vec<_>> = vectors.into_iter().map(normalize_vector).collect();
    normalized.ok_or_else(|| EmbedError::Malformed("a vector is zero or not finite".to_owned()))
}

/// Returns the vector at unit length, or `None` if the vector is zero or has a value that is not finite.
pub(super) fn normalize_vector(mut vector: Vec<f32>) -> Option<Vec<f32>> {
    // In f64, no square of a finite f32 overflows or underflows.
    let length = vector.iter().map(|&value| f64::from(value).powi(2)).sum::<f64>().sqrt();
    if !length.is_finite() || length == 0.0 {
        return None;
    }
    for value in &mut vector {
        *value = (f64::from(*value) / length) as f32;
    }
    Some(vector)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vector_of_any_length_is_normalized() {
        for scale in [1e-30_f32, 1.0, 1e37] {
            assert_eq!(normalize_vector(vec![3.0 * scale, -4.0 * scale]), Some(vec![0.6, -0.8]), "{scale}");
        }
    }

    #[test]
    fn vector_without_a_direction_is_none() {
        for vector in [vec![], vec![0.0, 0.0], vec![1.0, f32::NAN], vec![f32::INFINITY, 1.0]] {
            assert_eq!(normalize_vector(vector.clone()), None, "{vector:?}");
        }
    }

    #[test]
    fn incomparable_vectors_are_rejected() {
        let check = |vectors: Vec<Vec<f32>>, reason: &str| {
            assert_eq!(normalize_vectors(vectors), Err(EmbedError::Malformed(reason.to_owned())));
        };
        check(vec![vec![1.0, 0.0], vec![1.0]], "the vectors have different lengths");
        check(vec![vec![1.0, 0.0], vec![0.0, 0.0]], "a vector is zero or not finite");
        check(vec![Vec::new()], "a vector is zero or not finite");
        check(vec![vec![1.0; MAX_DIMENSIONS + 1]], "more than 4096 dimensions");
        assert_eq!(normalize_vectors(Vec::new()), Ok(Vec::new()));
    }
}
