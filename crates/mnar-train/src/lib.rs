//! Training that informative labels do not fool, on burn.
pub mod consistency;
pub mod error;
pub mod layers;
pub mod loss;
pub mod mechanism;
pub mod optimiser;
pub mod parameters;
