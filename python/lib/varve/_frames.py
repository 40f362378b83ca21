"""Frames of pandas and polars, of anything that has an Arrow stream. Columns are not copied."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


def pandas(table: Any) -> pd.DataFrame:
    """Columns stay Arrow's, so that whole numbers with gaps stay whole."""
    import pandas as pd
    import pyarrow as pa

    return pa.table(table).to_pandas(types_mapper=pd.ArrowDtype)


def polars(table: Any) -> pl.DataFrame:
    import polars as pl

    return pl.DataFrame(table)
