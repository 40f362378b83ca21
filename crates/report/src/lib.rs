//! Tables, charts, JSON, Parquet and HTML; knows results, not how they were made.
