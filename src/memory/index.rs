//! In-memory index of the vectors of stored answers, by owner, in a quarter of their stored size. A search returns all
//! rows that can be among the most similar ones; the stored vectors then decide the exact order.

use std::collections::HashMap;

use super::vector::{CosineBounds, QuantizedVectors, QueryVector, UnitVector};

/// Memory limit of the index: 120,000 answers with vectors of 384 dimensions.
pub const MAX_BYTES: usize = 96 << 20;

/// Vectors of answers, by owner. All vectors belong to one model: changes from another model clear the index.
#[derive(Debug, Default)]
pub struct VectorIndex {
    model: String,
    segments: HashMap<String, OwnerSegment>,
}

/// Change of one row.
#[derive(Debug, Clone, PartialEq)]
pub struct VectorChange {
    pub id: i64,
    pub revision: i64,
    /// Vectors of the row; `None` if the row was erased or has no vectors of the model.
    pub vectors: Option<RowVectors>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct RowVectors {
    /// Vector of the question. `None` if the question has no meaning without context.
    pub trigger: Option<UnitVector>,
    pub response: UnitVector,
}

/// Rows that can be among the most similar rows, without duplicates.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CandidateRows {
    pub triggers: Vec<i64>,
    pub responses: Vec<i64>,
}

/// Minimum number of rows per memory reservation, so that not every added row allocates.
const MIN_RESERVED_ROWS: usize = 256;

/// Rows of one owner.
#[derive(Debug, Default)]
struct OwnerSegment {
    /// Revision up to which changes are applied.
    revision: i64,
    ids: Vec<i64>,
    positions: HashMap<i64, usize>,
    triggers: QuantizedVectors,
    responses: QuantizedVectors,
}

impl VectorIndex {
    /// Returns the revision up to which changes of the owner's rows are applied, for vectors of this model.
    pub fn revision(&self, owner: &str, model: &str) -> i64 {
        let segment = self.segments.get(owner).filter(|_| self.model == model);
        segment.map_or(0, |segment| segment.revision)
    }

    /// Applies changes of one owner's rows, in the order of their revisions.
    pub fn apply_changes(&mut self, owner: &str, model: &str, changes: Vec<VectorChange>) {
        if self.model != model {
            self.segments.clear();
            model.clone_into(&mut self.model);
        }
        let segment = self.segments.entry(owner.to_owned()).or_default();
        segment.reserve(changes.len());
        for change in changes {
            segment.apply_change(change);
        }
    }

    /// Frees memory above the limit. The rows of owners other than `owners` are removed first, then the oldest rows of
    /// the owner with the most memory.
    pub fn evict_rows(&mut self, owners: &[String]) {
        if self.memory_bytes() <= MAX_BYTES {
            return;
        }
        self.segments.retain(|owner, _| owners.contains(owner));
        let used_bytes = self.memory_bytes();
        if let Some(largest) = self.segments.values_mut().max_by_key(|segment| segment.memory_bytes()) {
            let bytes_of_others = used_bytes - largest.memory_bytes();
            largest.shrink_to(MAX_BYTES.saturating_sub(bytes_of_others));
        }
    }

    /// Returns all rows of these owners that can be among the `count` most similar rows by trigger or by response, with
    /// a cosine of at least `floor`.
    pub fn find_candidates(
        &self,
        owners: &[String],
        query: &UnitVector,
        count: usize,
        floor: f32,
    ) -> CandidateRows {
        let query = QueryVector::new(query);
        let segments = || owners.iter().filter_map(|owner| self.segments.get(owner));
        CandidateRows {
            triggers: scan_for_candidates(
                segments().map(|segment| (segment, &segment.triggers)),
                &query,
                count,
                floor,
            ),
            responses: scan_for_candidates(
                segments().map(|segment| (segment, &segment.responses)),
                &query,
                count,
                floor,
            ),
        }
    }

    pub fn memory_bytes(&self) -> usize {
        self.segments.values().map(OwnerSegment::memory_bytes).sum()
    }

    /// Returns the number of stored rows.
    pub fn row_count(&self) -> usize {
        self.segments.values().map(|segment| segment.ids.len()).sum()
    }
}

fn scan_for_candidates<'a>(
    columns: impl Iterator<Item = (&'a OwnerSegment, &'a QuantizedVectors)>,
    query: &QueryVector,
    count: usize,
    floor: f32,
) -> Vec<i64> {
    let mut scanned: Vec<(CosineBounds, i64)> = Vec::new();
    for (segment, column) in columns {
        let above_floor = column.scan(query).zip(&segment.ids).filter(|(bounds, _)| bounds.upper >= floor);
        scanned.extend(above_floor.map(|(bounds, id)| (bounds, *id)));
    }
    if scanned.len() > count && count > 0 {
        // `count` rows have at least this similarity, so a row that cannot reach it is not among the most similar ones.
        let (_, (bounds, _), _) =
            scanned.select_nth_unstable_by(count - 1, |a, b| b.0.lower.total_cmp(&a.0.lower));
        let threshold = bounds.lower;
        scanned.retain(|(bounds, _)| bounds.upper >= threshold);
    }
    scanned.into_iter().map(|(_, id)| id).collect()
}

impl OwnerSegment {
    fn reserve(&mut self, rows: usize) {
        let free = self.ids.capacity() - self.ids.len();
        if free < rows {
            let additional = rows.max(MIN_RESERVED_ROWS);
            self.ids.reserve_exact(additional);
            self.triggers.reserve(additional);
            self.responses.reserve(additional);
        }
    }

    fn apply_change(&mut self, change: VectorChange) {
        self.revision = self.revision.max(change.revision);
        let position = self.positions.get(&change.id).copied();
        match (position, change.vectors) {
            (Some(position), Some(vectors)) => {
                self.triggers.set(position, vectors.trigger.as_ref());
                self.responses.set(position, Some(&vectors.response));
            }
            (None, Some(vectors)) => {
                if self.ids.is_empty() {
                    let dims = vectors.response.dims();
                    (self.triggers, self.responses) =
                        (QuantizedVectors::new(dims), QuantizedVectors::new(dims));
                    self.triggers.reserve(self.ids.capacity());
                    self.responses.reserve(self.ids.capacity());
                }
                self.positions.insert(change.id, self.ids.len());
                self.ids.push(change.id);
                self.triggers.push(vectors.trigger.as_ref());
                self.responses.push(Some(&vectors.response));
            }
            (Some(position), None) => self.remove_row(position),
            (None, None) => {}
        }
    }

    fn remove_row(&mut self, position: usize) {
        self.triggers.swap_remove(position);
        self.responses.swap_remove(position);
        let removed_id = self.ids.swap_remove(position);
        self.positions.remove(&removed_id);
        if let Some(moved_id) = self.ids.get(position) {
            self.positions.insert(*moved_id, position);
        }
    }

    fn memory_bytes(&self) -> usize {
        let row_bytes = size_of::<i64>() + 2 * (size_of::<i64>() + size_of::<usize>());
        self.triggers.memory_bytes() + self.responses.memory_bytes() + self.ids.len() * row_bytes
    }

    /// Removes the oldest rows in batches of a tenth. Removing each row separately would repeat the sort for each row.
    fn shrink_to(&mut self, max_bytes: usize) {
        while self.memory_bytes() > max_bytes && !self.ids.is_empty() {
            let mut oldest = self.ids.clone();
            oldest.sort_unstable();
            oldest.truncate(oldest.len().div_ceil(10));
            for id in oldest {
                if let Some(position) = self.positions.get(&id).copied() {
                    self.remove_row(position);
                }
            }
            self.triggers.shrink();
            self.responses.shrink();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODEL: &str = "m";

    fn unit_vector(angle: f32) -> UnitVector {
        UnitVector::new(vec![angle.cos(), angle.sin(), 0.0]).unwrap()
    }

    fn changed_row(id: i64, revision: i64, angle: f32) -> VectorChange {
        let vectors = RowVectors { trigger: Some(unit_vector(angle + 1.0)), response: unit_vector(angle) };
        VectorChange { id, revision, vectors: Some(vectors) }
    }

    fn removed_row(id: i64, revision: i64) -> VectorChange {
        VectorChange { id, revision, vectors: None }
    }

    fn find_responses(index: &VectorIndex, owners: &[&str], angle: f32, count: usize) -> Vec<i64> {
        let owners: Vec<String> = owners.iter().map(|owner| (*owner).to_owned()).collect();
        let mut found = index.find_candidates(&owners, &unit_vector(angle), count, 0.3).responses;
        found.sort_unstable();
        found
    }

    #[test]
    fn most_similar_rows_are_found_per_owner() {
        let mut index = VectorIndex::default();
        index.apply_changes(
            "u1",
            MODEL,
            vec![changed_row(1, 1, 0.0), changed_row(2, 2, 0.5), changed_row(3, 3, 1.0)],
        );
        index.apply_changes("u2", MODEL, vec![changed_row(4, 4, 0.0)]);
        index.apply_changes("all", MODEL, vec![changed_row(5, 5, 0.1)]);

        assert_eq!(find_responses(&index, &["u1", "all"], 0.0, 2), [1, 5]);
        assert_eq!(find_responses(&index, &["u1"], 0.0, 9), [1, 2, 3]);
        assert_eq!(find_responses(&index, &["u3"], 0.0, 9), [0_i64; 0]);
        assert_eq!(index.find_candidates(&["u1".to_owned()], &unit_vector(1.0), 1, 0.3).triggers, [1]);
    }

    #[test]
    fn dissimilar_rows_are_not_found() {
        let mut index = VectorIndex::default();
        index.apply_changes("u1", MODEL, vec![changed_row(1, 1, 0.0), changed_row(2, 2, 1.5)]);
        assert_eq!(find_responses(&index, &["u1"], 0.0, 9), [1]);
    }

    #[test]
    fn rows_are_updated_and_removed() {
        let mut index = VectorIndex::default();
        index.apply_changes(
            "u1",
            MODEL,
            vec![changed_row(1, 1, 0.0), changed_row(2, 2, 0.1), changed_row(3, 3, 0.2)],
        );
        assert_eq!(index.revision("u1", MODEL), 3);

        index.apply_changes("u1", MODEL, vec![removed_row(1, 4), changed_row(2, 5, 3.0), removed_row(9, 6)]);
        assert_eq!(find_responses(&index, &["u1"], 0.0, 9), [3]);
        assert_eq!(find_responses(&index, &["u1"], 3.0, 9), [2]);
        assert_eq!((index.revision("u1", MODEL), index.row_count()), (6, 2));
    }

    #[test]
    fn vectors_of_another_model_clear_the_index() {
        let mut index = VectorIndex::default();
        index.apply_changes("u1", MODEL, vec![changed_row(1, 1, 0.0)]);
        index.apply_changes("u2", MODEL, vec![changed_row(2, 2, 0.0)]);
        assert_eq!(index.revision("u1", "other"), 0);

        index.apply_changes("u1", "other", vec![changed_row(3, 3, 0.0)]);
        assert_eq!(find_responses(&index, &["u1", "u2"], 0.0, 9), [3]);
        assert_eq!(index.revision("u2", "other"), 0);
    }

    #[test]
    fn oversized_segment_drops_its_oldest_rows() {
        let mut segment = OwnerSegment::default();
        for id in 1..=100 {
            segment.apply_change(changed_row(id, id, 0.0));
        }
        segment.shrink_to(segment.memory_bytes() / 2);
        assert!(segment.ids.iter().all(|id| *id > 30), "{:?}", segment.ids);
        assert!(!segment.ids.is_empty());
        assert_eq!(segment.positions.len(), segment.ids.len());
    }

    #[test]
    fn quantized_search_misses_no_top_candidate() {
        let mut index = VectorIndex::default();
        let angles: Vec<f32> = (0..500).map(|n| (n as f32 * 0.37) % 1.2).collect();
        let rows = angles.iter().enumerate().map(|(n, angle)| changed_row(n as i64, n as i64, *angle));
        index.apply_changes("u1", MODEL, rows.collect());
        for angle in [0.0_f32, 0.31, 0.77, 1.1] {
            let mut exact: Vec<(i64, f32)> = angles
                .iter()
                .enumerate()
                .map(|(n, a)| (n as i64, unit_vector(*a).cosine(&unit_vector(angle))))
                .collect();
            exact.sort_by(|a, b| b.1.total_cmp(&a.1));
            let found = find_responses(&index, &["u1"], angle, 20);
            assert!(exact[..20].iter().all(|(id, _)| found.contains(id)), "{angle}");
        }
    }
}
