//! Work, counted in bytes allocated: the same on every machine and at every load. What runs on
//! other threads is not counted.

/// What `f` allocates, freed or not.
pub fn work(f: impl FnOnce()) -> u64 {
    allocation_counter::measure(f).bytes_total
}

/// Twice the input is about twice the work, and not four times: `cost` of `n` and of `2 * n`.
pub fn assert_linear(n: usize, cost: impl Fn(usize) -> u64) {
    let (once, twice) = (cost(n), cost(2 * n));
    let linear = once > 0 && twice <= once / 2 * 5;
    assert!(linear, "{once} bytes for {n}, {twice} for twice as much");
}
