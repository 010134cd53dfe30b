"""Regression and classification over data that stay at their sites, with error bars.

Each site sends signatures: points, the number of rows behind each, and what is known of their targets, the mean of a
number and the counts of classes. The signatures of all sites together are a weighted table. Weighted least squares on
it estimates the coefficients of least squares on all rows, and weighted logistic regression those of logistic
regression. Error bars come from a bootstrap over signatures: fit again and again to signatures drawn with replacement.
A signature of w rows has a mean of w errors, so these error bars are those of all rows, not those of 1500 points.
The mean of a signature hides how rows differ within it. That biases what is not linear: the fewer the signatures, the
closer to zero are the slopes of the logistic regression.
"""

import numpy as np
from sklearn.linear_model import LinearRegression, LogisticRegression

from dc2 import Compressor, Signatures

N_SITES, N_SIGNATURES, N_DRAWN = 3, 500, 100
SLOPES = np.array([1.5, -0.7, 0.0])


def rows_of(site):
    """Return the rows of a site, a number and a class for each; sites see different parts of the space."""
    rng = np.random.default_rng(site)
    X = rng.normal(loc=[site - 1, 0, 0], size=(20_000, 3))
    number = X @ SLOPES + rng.normal(scale=2, size=len(X))
    return X, number, (rng.random(len(X)) < 1 / (1 + np.exp(-X @ SLOPES))).astype(int)


def sent_by(site):
    """Return what leaves a site: signatures, and the mean number and the counts of classes of each."""
    X, number, kind = rows_of(site)
    compressor = Compressor(N_SIGNATURES, random_state=site).fit(X)
    ids, signatures = compressor.apply(X), compressor.signatures_
    size = np.bincount(ids, minlength=len(signatures))
    ones = np.bincount(ids, kind, len(signatures))
    mean = np.bincount(ids, number, len(signatures)) / np.maximum(size, 1)
    return signatures, mean, np.column_stack([size - ones, ones])


def linear(points, weights, means, counts):
    return LinearRegression().fit(points, means, sample_weight=weights).coef_


def logistic(points, weights, means, counts):
    """Fit both classes at each signature, weighted by their counts."""
    kind = np.repeat([0, 1], len(points))
    model = LogisticRegression(C=1e6)  # nearly without a penalty
    return model.fit(np.vstack([points, points]), kind, sample_weight=counts.T.ravel()).coef_[0]


def with_error_bars(fit, table, rng):
    """Return an estimate and its standard error, by a bootstrap over signatures."""
    n = len(table[0])
    drawn = [fit(*(column[some] for column in table)) for some in rng.integers(0, n, (N_DRAWN, n))]
    return fit(*table), np.std(drawn, axis=0)


def main():
    parts = [sent_by(site) for site in range(N_SITES)]
    signatures = Signatures.merge(*(part[0] for part in parts))
    means, counts = np.concatenate([part[1] for part in parts]), np.concatenate([part[2] for part in parts])
    table = signatures.points, signatures.weights, means, counts
    X, number, kind = (np.concatenate(column) for column in zip(*map(rows_of, range(N_SITES)), strict=True))
    rows = X, np.ones(len(X)), number, np.column_stack([1 - kind, kind])
    rng, found = np.random.default_rng(0), []
    for name, fit in (("linear", linear), ("logistic", logistic)):
        estimate, error = with_error_bars(fit, table, rng)
        whole = fit(*rows)
        found.append((estimate, error, whole))
        print(f"{name}: {len(signatures)} signatures of {len(X):,} rows; slopes with 95% error bars, and of all rows")
        for truth, value, bar, all_rows in zip(SLOPES, estimate, 1.96 * error, whole, strict=True):
            print(f"  truth {truth:+.2f}: {value:+.3f} +- {bar:.3f}; all rows {all_rows:+.3f}")
    return found


if __name__ == "__main__":
    main()
