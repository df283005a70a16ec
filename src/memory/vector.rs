//! Vectors of texts: their stored form, the similarity of two vectors, and a compact form for scans, with a quarter of
//! the size.

/// Maximum number of dimensions. A scan of more dimensions could overflow.
pub const MAX_DIMS: usize = 4_096;
/// Quantization steps of a stored number and of a query number. Their products, summed over all dimensions, fit in 32
/// bits.
const STORED_STEPS: f32 = 127.0;
const QUERY_STEPS: f32 = 2_047.0;
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
        let fits = (1..=MAX_DIMS).contains(&numbers.len());
        if !fits || !length.is_finite() || length < 1e-12 {
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

    /// Returns the key of comparable vectors: the model and the number of dimensions, since a server may put another
    /// model behind a name.
    pub fn space_key(&self, model: &str) -> String {
        format!("{model}/{}", self.dims())
    }

    /// Returns the cosine, from -1 to 1. Vectors with different numbers of dimensions are not similar at all.
    pub fn cosine(&self, other: &Self) -> f32 {
        if self.dims() != other.dims() {
            return -1.0;
        }
        self.0.iter().zip(&other.0).map(|(one, other)| one * other).sum()
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

/// Sequence of vectors with one byte per number. The rounding error of each vector is known, so a scan returns bounds
/// of the cosine.
#[derive(Debug, Clone, Default)]
pub struct QuantizedVectors {
    dims: usize,
    steps: Vec<i8>,
    /// Step size of each vector; 0 for an absent vector.
    step: Vec<f32>,
    /// Length of each vector's rounding error.
    errors: Vec<f32>,
}

/// Query vector for comparison with stored vectors.
#[derive(Debug, Clone)]
pub struct QueryVector {
    steps: Vec<i16>,
    step: f32,
    error: f32,
}

/// Lower and upper bound of a cosine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CosineBounds {
    pub least: f32,
    pub most: f32,
}

impl QuantizedVectors {
    pub fn new(dims: usize) -> Self {
        Self { dims, steps: Vec::new(), step: Vec::new(), errors: Vec::new() }
    }

    pub fn len(&self) -> usize {
        self.step.len()
    }

    pub fn is_empty(&self) -> bool {
        self.step.is_empty()
    }

    pub fn memory_bytes(&self) -> usize {
        self.steps.capacity() + (self.step.capacity() + self.errors.capacity()) * size_of::<f32>()
    }

    /// Appends a vector. A vector with another number of dimensions counts as absent.
    pub fn push(&mut self, vector: Option<&UnitVector>) {
        let at = self.len();
        self.steps.resize((at + 1) * self.dims, 0);
        self.step.push(0.0);
        self.errors.push(0.0);
        self.set(at, vector);
    }

    pub fn set(&mut self, at: usize, vector: Option<&UnitVector>) {
        let steps = &mut self.steps[at * self.dims..(at + 1) * self.dims];
        let Some(vector) = vector.filter(|vector| vector.dims() == self.dims) else {
            steps.fill(0);
            (self.step[at], self.errors[at]) = (0.0, 0.0);
            return;
        };
        let (step, lost) =
            quantize_numbers(&vector.0, STORED_STEPS, |index, number| steps[index] = number as i8);
        (self.step[at], self.errors[at]) = (step, lost);
    }

    /// Removes the vector at `at` and moves the last vector to its position.
    pub fn swap_remove(&mut self, at: usize) {
        let last = self.len() - 1;
        self.steps.copy_within(last * self.dims.., at * self.dims);
        self.steps.truncate(last * self.dims);
        self.step.swap_remove(at);
        self.errors.swap_remove(at);
    }

    /// Reserves memory for exactly `more` further vectors. A buffer that doubles when it is full would use twice its
    /// size.
    pub fn reserve(&mut self, more: usize) {
        self.steps.reserve_exact(more * self.dims);
        self.step.reserve_exact(more);
        self.errors.reserve_exact(more);
    }

    /// Frees unused memory.
    pub fn shrink(&mut self) {
        self.steps.shrink_to_fit();
        self.step.shrink_to_fit();
        self.errors.shrink_to_fit();
    }

    /// Returns the bounds of the cosine of each vector in order. An absent vector has the bounds -1.
    pub fn scan(&self, sought: &QueryVector) -> impl Iterator<Item = CosineBounds> {
        // A search in vectors of other dimensions finds nothing, regardless of the rows.
        let fits = sought.steps.len() == self.dims;
        self.steps.chunks_exact(self.dims.max(1)).zip(self.step.iter().zip(&self.errors)).map(
            move |(steps, (step, lost))| {
                if !fits || *step == 0.0 {
                    return CosineBounds { least: -1.0, most: -1.0 };
                }
                let product = dot_product(steps, &sought.steps) as f32 * step * sought.step;
                let off = sought.error * (1.0 + lost) + lost + SUM_ROUNDING_ERROR;
                CosineBounds { least: product - off, most: product + off }
            },
        )
    }
}

impl QueryVector {
    pub fn new(vector: &UnitVector) -> Self {
        let mut steps = vec![0; vector.dims()];
        let (step, lost) =
            quantize_numbers(&vector.0, QUERY_STEPS, |index, number| steps[index] = number as i16);
        Self { steps, step, error: lost }
    }
}

/// Rounds the numbers to `steps` steps in each direction. Returns the step size and the length of the rounding error.
fn quantize_numbers(numbers: &[f32], steps: f32, mut put: impl FnMut(usize, f32)) -> (f32, f32) {
    let largest = numbers.iter().fold(0.0_f32, |largest, number| largest.max(number.abs()));
    let step = largest / steps;
    let mut lost = 0.0;
    for (index, number) in numbers.iter().enumerate() {
        let rounded = (number / step).round();
        put(index, rounded);
        lost += f64::from(number - rounded * step).powi(2);
    }
    (step, lost.sqrt() as f32)
}

/// Returns the dot product. The loop is written so that the compiler multiplies eight numbers per instruction.
fn dot_product(one: &[i8], other: &[i16]) -> i32 {
    one.iter().zip(other).map(|(one, other)| i32::from(*one) * i32::from(*other)).sum()
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
        fn cosine_is_within_the_bounds(one in numbers(), other in numbers()) {
            let (Some(one), Some(other)) = (UnitVector::new(one), UnitVector::new(other)) else { return Ok(()) };
            let mut column = QuantizedVectors::new(one.dims());
            column.push(Some(&one));
            let bounds = column.scan(&QueryVector::new(&other)).next().unwrap();
            let likeness = one.cosine(&other);
            prop_assert!(bounds.least <= likeness && likeness <= bounds.most, "{bounds:?} {likeness}");
            prop_assert!(bounds.most - bounds.least < 0.06, "{bounds:?}");
        }

        #[test]
        fn vector_survives_serialization(numbers in numbers()) {
            let Some(unit) = UnitVector::new(numbers) else { return Ok(()) };
            let read = UnitVector::from_bytes(&unit.to_bytes()).unwrap();
            prop_assert!(read.cosine(&unit) > 0.99999);
        }
    }

    #[test]
    fn numbers_without_a_direction_are_no_vector() {
        for numbers in [vec![], vec![0.0; 4], vec![f32::NAN, 1.0], vec![f32::INFINITY, 1.0], vec![1.0; 4_097]]
        {
            assert_eq!(UnitVector::new(numbers), None);
        }
        assert_eq!(UnitVector::from_bytes(&[1, 2, 3]), None);
    }

    #[test]
    fn largest_vectors_do_not_overflow() {
        let one = UnitVector::new(vec![1.0; MAX_DIMS]).unwrap();
        let mut column = QuantizedVectors::new(MAX_DIMS);
        column.push(Some(&one));
        let bounds = column.scan(&QueryVector::new(&one)).next().unwrap();
        assert!(bounds.least > 0.99 && bounds.most < 1.01, "{bounds:?}");
    }

    #[test]
    fn vectors_of_different_dimensions_are_dissimilar() {
        let (one, other) = (UnitVector::new(vec![1.0; 4]).unwrap(), UnitVector::new(vec![1.0; 5]).unwrap());
        assert_eq!(one.cosine(&other), -1.0);
        let mut column = QuantizedVectors::new(4);
        column.push(Some(&one));
        column.push(Some(&other));
        column.push(None);
        let least: Vec<bool> =
            column.scan(&QueryVector::new(&one)).map(|bounds| bounds.least > 0.9).collect();
        assert_eq!(least, [true, false, false]);
        assert!(column.scan(&QueryVector::new(&other)).all(|bounds| bounds.most <= -1.0));
    }
}
