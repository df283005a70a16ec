//! Vectors of texts: their stored form, the similarity of two of them, and a form of a quarter of their size for
//! scanning.

/// Most dimensions that are accepted: more would let a scan overflow.
pub const MAX_DIMS: usize = 4_096;
/// Steps of a stored number and of a number in a query. Their products, summed over all dimensions, fit in 32 bits.
const STORED_STEPS: f32 = 127.0;
const SOUGHT_STEPS: f32 = 2_047.0;
/// Upper bound of the rounding error of a sum of that many f32.
const ROUNDING: f32 = 1e-5;

/// Vector of length 1, so that the product of two is the cosine of the angle between them.
#[derive(Debug, Clone, PartialEq)]
pub struct Unit(Vec<f32>);

impl Unit {
    /// Returns `None` for a vector without a direction, with too many dimensions, or with a value that is not a number.
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
    pub fn space(&self, model: &str) -> String {
        format!("{model}/{}", self.dims())
    }

    /// Returns the cosine, from -1 to 1. Vectors of different lengths are not similar at all.
    pub fn likeness(&self, other: &Self) -> f32 {
        if self.dims() != other.dims() {
            return -1.0;
        }
        self.0.iter().zip(&other.0).map(|(one, other)| one * other).sum()
    }

    /// Returns the stored bytes: f32, little-endian.
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
/// of its cosine.
#[derive(Debug, Clone, Default)]
pub struct Column {
    dims: usize,
    steps: Vec<i8>,
    /// Step size of each vector; 0 for an absent vector.
    step: Vec<f32>,
    /// Length of each vector's rounding error.
    lost: Vec<f32>,
}

/// Query vector that others are compared with.
#[derive(Debug, Clone)]
pub struct Sought {
    steps: Vec<i16>,
    step: f32,
    lost: f32,
}

/// Bounds of a cosine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    pub least: f32,
    pub most: f32,
}

impl Column {
    pub fn new(dims: usize) -> Self {
        Self { dims, steps: Vec::new(), step: Vec::new(), lost: Vec::new() }
    }

    pub fn len(&self) -> usize {
        self.step.len()
    }

    pub fn is_empty(&self) -> bool {
        self.step.is_empty()
    }

    pub fn bytes(&self) -> usize {
        self.steps.capacity() + (self.step.capacity() + self.lost.capacity()) * size_of::<f32>()
    }

    /// Adds a vector. A vector with another number of dimensions counts as absent.
    pub fn push(&mut self, vector: Option<&Unit>) {
        let at = self.len();
        self.steps.resize((at + 1) * self.dims, 0);
        self.step.push(0.0);
        self.lost.push(0.0);
        self.set(at, vector);
    }

    pub fn set(&mut self, at: usize, vector: Option<&Unit>) {
        let steps = &mut self.steps[at * self.dims..(at + 1) * self.dims];
        let Some(vector) = vector.filter(|vector| vector.dims() == self.dims) else {
            steps.fill(0);
            (self.step[at], self.lost[at]) = (0.0, 0.0);
            return;
        };
        let (step, lost) = round(&vector.0, STORED_STEPS, |index, number| steps[index] = number as i8);
        (self.step[at], self.lost[at]) = (step, lost);
    }

    /// Removes the vector at `at` and moves the last vector to its position.
    pub fn swap_remove(&mut self, at: usize) {
        let last = self.len() - 1;
        self.steps.copy_within(last * self.dims.., at * self.dims);
        self.steps.truncate(last * self.dims);
        self.step.swap_remove(at);
        self.lost.swap_remove(at);
    }

    /// Reserves exactly that many more vectors: a buffer that doubles when it is full would use twice its size.
    pub fn reserve(&mut self, more: usize) {
        self.steps.reserve_exact(more * self.dims);
        self.step.reserve_exact(more);
        self.lost.reserve_exact(more);
    }

    /// Frees unused memory.
    pub fn shrink(&mut self) {
        self.steps.shrink_to_fit();
        self.step.shrink_to_fit();
        self.lost.shrink_to_fit();
    }

    /// Returns for each vector in order the bounds of its cosine; -1 for an absent vector.
    pub fn scan(&self, sought: &Sought) -> impl Iterator<Item = Bounds> {
        // A search in vectors of other dimensions finds nothing, regardless of the rows.
        let fits = sought.steps.len() == self.dims;
        self.steps.chunks_exact(self.dims.max(1)).zip(self.step.iter().zip(&self.lost)).map(
            move |(steps, (step, lost))| {
                if !fits || *step == 0.0 {
                    return Bounds { least: -1.0, most: -1.0 };
                }
                let product = dot(steps, &sought.steps) as f32 * step * sought.step;
                let off = sought.lost * (1.0 + lost) + lost + ROUNDING;
                Bounds { least: product - off, most: product + off }
            },
        )
    }
}

impl Sought {
    pub fn new(vector: &Unit) -> Self {
        let mut steps = vec![0; vector.dims()];
        let (step, lost) = round(&vector.0, SOUGHT_STEPS, |index, number| steps[index] = number as i16);
        Self { steps, step, lost }
    }
}

/// Rounds to that many steps in each direction; returns the step size and the length of the rounding error.
fn round(numbers: &[f32], steps: f32, mut put: impl FnMut(usize, f32)) -> (f32, f32) {
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

/// Dot product, written so that the compiler multiplies eight numbers per instruction.
fn dot(one: &[i8], other: &[i16]) -> i32 {
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
        fn the_cosine_lies_within_the_bounds(one in numbers(), other in numbers()) {
            let (Some(one), Some(other)) = (Unit::new(one), Unit::new(other)) else { return Ok(()) };
            let mut column = Column::new(one.dims());
            column.push(Some(&one));
            let bounds = column.scan(&Sought::new(&other)).next().unwrap();
            let likeness = one.likeness(&other);
            prop_assert!(bounds.least <= likeness && likeness <= bounds.most, "{bounds:?} {likeness}");
            prop_assert!(bounds.most - bounds.least < 0.06, "{bounds:?}");
        }

        #[test]
        fn what_is_stored_is_read_back(numbers in numbers()) {
            let Some(unit) = Unit::new(numbers) else { return Ok(()) };
            let read = Unit::from_bytes(&unit.to_bytes()).unwrap();
            prop_assert!(read.likeness(&unit) > 0.99999);
        }
    }

    #[test]
    fn what_has_no_direction_is_no_vector() {
        for numbers in [vec![], vec![0.0; 4], vec![f32::NAN, 1.0], vec![f32::INFINITY, 1.0], vec![1.0; 4_097]]
        {
            assert_eq!(Unit::new(numbers), None);
        }
        assert_eq!(Unit::from_bytes(&[1, 2, 3]), None);
    }

    #[test]
    fn the_largest_numbers_there_can_be_do_not_overflow() {
        let one = Unit::new(vec![1.0; MAX_DIMS]).unwrap();
        let mut column = Column::new(MAX_DIMS);
        column.push(Some(&one));
        let bounds = column.scan(&Sought::new(&one)).next().unwrap();
        assert!(bounds.least > 0.99 && bounds.most < 1.01, "{bounds:?}");
    }

    #[test]
    fn vectors_of_other_dimensions_are_not_alike() {
        let (one, other) = (Unit::new(vec![1.0; 4]).unwrap(), Unit::new(vec![1.0; 5]).unwrap());
        assert_eq!(one.likeness(&other), -1.0);
        let mut column = Column::new(4);
        column.push(Some(&one));
        column.push(Some(&other));
        column.push(None);
        let least: Vec<bool> = column.scan(&Sought::new(&one)).map(|bounds| bounds.least > 0.9).collect();
        assert_eq!(least, [true, false, false]);
        assert!(column.scan(&Sought::new(&other)).all(|bounds| bounds.most <= -1.0));
    }
}
