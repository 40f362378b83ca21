//! Native kernels that run on the model.
