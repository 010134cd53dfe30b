"""A customer table of mixed columns: DC2Clustering as it comes, and K-means on one-hot columns with imputation.

Run as ``python benchmarks/bench_tables.py [ROWS]``.
"""

import sys
import time
import warnings
from pathlib import Path

from sklearn.cluster import KMeans
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from dc2 import DC2Clustering, TablePreparer

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from table_data import customers


def main() -> None:
    table, groups = customers(int(sys.argv[1]) if len(sys.argv) > 1 else 300_000)
    words = ["plan", "city", "country", "active"]
    numbers = ["age", "income", "visits", "basket"]
    one_hot = make_pipeline(
        make_column_transformer(
            (make_pipeline(SimpleImputer(), StandardScaler()), numbers),
            (make_pipeline(OneHotEncoder(sparse_output=False), StandardScaler()), words),
        ),
        KMeans(5, n_init=3, random_state=0),
    )
    warnings.simplefilter("ignore")
    since = time.perf_counter()
    TablePreparer().fit(table).transform(table)
    print(f"preparation alone: {time.perf_counter() - since:.2f} s")
    for name, model in {
        "DC2Clustering": DC2Clustering(5, random_state=0),
        "one-hot, K-means": one_hot,
    }.items():
        since = time.perf_counter()
        labels = model.fit_predict(table)
        score = adjusted_rand_score(groups, labels)
        print(f"{name}: ARI {score:.3f} in {time.perf_counter() - since:.2f} s")


if __name__ == "__main__":
    main()
