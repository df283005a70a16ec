//! Vectors of texts: unit vectors with their stored form and cosine similarity, and a quantized form for scans that has
//! a quarter of the size.

/// Maximum number of dimensions. A scan of more dimensions could overflow.
pub const MAX_DIMS: usize = 4_096;
/// Largest quantized values of a stored vector and of a query vector. The sum of their products over [`MAX_DIMS`]
/// dimensions fits in 32 bits.
const MAX_STORED_VALUE: f32 = 127.0;
const MAX_QUERY_VALUE: f32 = 2_047.0;
/// Upper bound of the rounding error of a sum of `MAX_DIMS` f32 products.
const SUM_ROUNDING_ERROR: f32 = 1e-5;

/// Vector of length 1. The dot product of two such vectors is the cosine of the angle between them.
#[derive(Debug, Clone, PartialEq)]
pub struct UnitVector(Vec<f32>);

impl UnitVector {
    /// Creates a unit vector. Returns `None` for a vector without a direction, with too many dimensions, or with a
    /// value that is not a number.
    pub fn new(mut numbers: Vec<f32>) -> Option<Self> {
        let length = numbers.iter().map(|number| f64::from(*number).powi(2)).sum::<f64>().sqrt();
        let is_supported_length = (1..=MAX_DIMS).contains(&numbers.len());
        if !is_supported_length || !length.is_finite() || length < 1e-12 {
            return None;
        }
        for number in &mut numbers {
            *number = (f64::from(*number) / length) as f32;
        }
        Some(Self(numbers))
    }

    pub fn dims(&self) -> usize {
        self.0.len()
    }

    /// Returns the key of a vector space: the model and the number of dimensions, because a server may change the model
    /// behind a name. Only vectors with the same key are compared.
    pub fn space_key(&self, model: &str) -> String {
        format!("{model}/{}", self.dims())
    }

    /// Returns the cosine similarity, from -1 to 1. Vectors with different numbers of dimensions have the similarity
    /// -1.
    pub fn cosine(&self, other: &Self) -> f32 {
        if self.dims() != other.dims() {
            return -1.0;
        }
        self.0.iter().zip(&other.0).map(|(a, b)| a * b).sum()
    }

    /// Returns the stored bytes of the vector, as little-endian f32 values.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.0.iter().flat_map(|number| number.to_le_bytes()).collect()
    }

    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (numbers, rest) = bytes.as_chunks::<4>();
        if !rest.is_empty() {
            return None;
        }
        Self::new(numbers.iter().map(|number| f32::from_le_bytes(*number)).collect())
    }
}

/// List of vectors with one byte per number. The rounding error of each vector is stored, so that a scan can return
/// bounds of the cosine.
#[derive(Debug, Clone, Default)]
pub struct QuantizedVectors {
    dims: usize,
    values: Vec<i8>,
    /// Scale of each vector; 0 for an absent vector.
    scales: Vec<f32>,
    /// Length of each vector's rounding error.
    errors: Vec<f32>,
}

/// Quantized query vector for comparison with stored vectors.
#[derive(Debug, Clone)]
pub struct QueryVector {
    values: Vec<i16>,
    scale: f32,
    error: f32,
}

/// Lower and upper bound of a cosine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CosineBounds {
    pub lower: f32,
    pub upper: f32,
}

impl QuantizedVectors {
    pub fn new(dims: usize) -> Self {
        Self { dims, values: Vec::new(), scales: Vec::new(), errors: Vec::new() }
    }

    pub fn len(&self) -> usize {
        self.scales.len()
    }

    pub fn is_empty(&self) -> bool {
        self.scales.is_empty()
    }

    pub fn memory_bytes(&self) -> usize {
        self.values.capacity() + (self.scales.capacity() + self.errors.capacity()) * size_of::<f32>()
    }

    /// Appends a vector. A vector with another number of dimensions counts as absent.
    pub fn push(&mut self, vector: Option<&UnitVector>) {
        let index = self.len();
        self.values.resize((index + 1) * self.dims, 0);
        self.scales.push(0.0);
        self.errors.push(0.0);
        self.set(index, vector);
    }

    pub fn set(&mut self, index: usize, vector: Option<&UnitVector>) {
        let values = &mut self.values[index * self.dims..(index + 1) * self.dims];
        let Some(vector) = vector.filter(|vector| vector.dims() == self.dims) else {
            values.fill(0);
            (self.scales[index], self.errors[index]) = (0.0, 0.0);
            return;
        };
        let (scale, error) =
            quantize_numbers(&vector.0, MAX_STORED_VALUE, |position, number| values[position] = number as i8);
        (self.scales[index], self.errors[index]) = (scale, error);
    }

    /// Removes the vector at `index` and moves the last vector to its position.
    pub fn swap_remove(&mut self, index: usize) {
        let last = self.len() - 1;
        self.values.copy_within(last * self.dims.., index * self.dims);
        self.values.truncate(last * self.dims);
        self.scales.swap_remove(index);
        self.errors.swap_remove(index);
    }

    /// Reserves memory for exactly `additional` vectors: a buffer that doubles when it is full could waste half of its
    /// memory.
    pub fn reserve(&mut self, additional: usize) {
        self.values.reserve_exact(additional * self.dims);
        self.scales.reserve_exact(additional);
        self.errors.reserve_exact(additional);
    }

    /// Frees unused memory.
    pub fn shrink(&mut self) {
        self.values.shrink_to_fit();
        self.scales.shrink_to_fit();
        self.errors.shrink_to_fit();
    }

    /// Returns the bounds of the cosine of each vector, in order. The bounds of an absent vector are -1.
    pub fn scan(&self, query: &QueryVector) -> impl Iterator<Item = CosineBounds> {
        // Vectors with another number of dimensions are not comparable.
        let is_comparable = query.values.len() == self.dims;
        self.values.chunks_exact(self.dims.max(1)).zip(self.scales.iter().zip(&self.errors)).map(
            move |(values, (scale, error))| {
                if !is_comparable || *scale == 0.0 {
                    return CosineBounds { lower: -1.0, upper: -1.0 };
                }
                let cosine = dot_product(values, &query.values) as f32 * scale * query.scale;
                let max_error = query.error * (1.0 + error) + error + SUM_ROUNDING_ERROR;
                CosineBounds { lower: cosine - max_error, upper: cosine + max_error }
            },
        )
    }
}

impl QueryVector {
    pub fn new(vector: &UnitVector) -> Self {
        let mut values = vec![0; vector.dims()];
        let (scale, error) =
            quantize_numbers(&vector.0, MAX_QUERY_VALUE, |index, number| values[index] = number as i16);
        Self { values, scale, error }
    }
}

/// Scales the numbers to at most `max_value` and rounds them. Returns the scale and the length of the rounding error.
fn quantize_numbers(numbers: &[f32], max_value: f32, mut store: impl FnMut(usize, f32)) -> (f32, f32) {
    let largest = numbers.iter().fold(0.0_f32, |largest, number| largest.max(number.abs()));
    let scale = largest / max_value;
    let mut squared_error = 0.0;
    for (index, number) in numbers.iter().enumerate() {
        let rounded = (number / scale).round();
        store(index, rounded);
        squared_error += f64::from(number - rounded * scale).powi(2);
    }
    (scale, squared_error.sqrt() as f32)
}

/// Returns the dot product. The loop is written so that the compiler multiplies eight numbers per instruction.
fn dot_product(stored: &[i8], query: &[i16]) -> i32 {
    stored.iter().zip(query).map(|(a, b)| i32::from(*a) * i32::from(*b)).sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn numbers() -> impl Strategy<Value = Vec<f32>> {
        prop::collection::vec(-1.0_f32..1.0, 24)
    }

    proptest! {
        #[test]
        fn cosine_is_within_the_bounds(a in numbers(), b in numbers()) {
            let (Some(stored), Some(query)) = (UnitVector::new(a), UnitVector::new(b)) else { return Ok(()) };
            let mut vectors = QuantizedVectors::new(stored.dims());
            vectors.push(Some(&stored));
            let bounds = vectors.scan(&QueryVector::new(&query)).next().unwrap();
            let cosine = stored.cosine(&query);
            prop_assert!(bounds.lower <= cosine && cosine <= bounds.upper, "{bounds:?} {cosine}");
            prop_assert!(bounds.upper - bounds.lower < 0.06, "{bounds:?}");
        }

        #[test]
        fn vector_survives_serialization(numbers in numbers()) {
            let Some(unit) = UnitVector::new(numbers) else { return Ok(()) };
            let restored = UnitVector::from_bytes(&unit.to_bytes()).unwrap();
            prop_assert!(restored.cosine(&unit) > 0.99999);
        }
    }

    #[test]
    fn invalid_numbers_are_rejected() {
        for numbers in [vec![], vec![0.0; 4], vec![f32::NAN, 1.0], vec![f32::INFINITY, 1.0], vec![1.0; 4_097]]
        {
            assert_eq!(UnitVector::new(numbers), None);
        }
        assert_eq!(UnitVector::from_bytes(&[1, 2, 3]), None);
    }

    #[test]
    fn largest_vectors_do_not_overflow() {
        let one = UnitVector::new(vec![1.0; MAX_DIMS]).unwrap();
        let mut vectors = QuantizedVectors::new(MAX_DIMS);
        vectors.push(Some(&one));
        let bounds = vectors.scan(&QueryVector::new(&one)).next().unwrap();
        assert!(bounds.lower > 0.99 && bounds.upper < 1.01, "{bounds:?}");
    }

    #[test]
    fn vectors_of_different_dimensions_are_dissimilar() {
        let (one, other) = (UnitVector::new(vec![1.0; 4]).unwrap(), UnitVector::new(vec![1.0; 5]).unwrap());
        assert_eq!(one.cosine(&other), -1.0);
        let mut vectors = QuantizedVectors::new(4);
        vectors.push(Some(&one));
        vectors.push(Some(&other));
        vectors.push(None);
        let is_similar: Vec<bool> =
            vectors.scan(&QueryVector::new(&one)).map(|bounds| bounds.lower > 0.9).collect();
        assert_eq!(is_similar, [true, false, false]);
        assert!(vectors.scan(&QueryVector::new(&other)).all(|bounds| bounds.upper <= -1.0));
    }
}
