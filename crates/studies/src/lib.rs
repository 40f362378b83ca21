//! The five papers as runnable studies, published beside ours.
