"""The words of docs/quality.md."""

HEADER = """# Quality

Written by `python benchmarks/quality.py`; dc2 {version}, {machine}. Every method is told the true number of clusters,
except HDBSCAN and where it says "auto k". A set may have more than one valid labelling; tables show the best, and
rows that a labelling marks as noise are not scored. Seconds are those of one `fit_predict`, once: compare orders of
magnitude.

* **RPFCluster** is what a user gets: defaults, bandwidth chosen without labels.
* "leaf" and "nearest" are the ways to populate, "ties" is `similarity="ties"`, "b=0.05" a fixed bandwidth, "oracle b"
  the best bandwidth by true labels (nobody can have that), "paper" the paper's settings with its middle bandwidth.
* Peers: K-means with 10 starts (1 above 1,000,000 numbers), mixtures with full covariances (3 starts, 1
  above 100,000 numbers), spectral clustering with
  gamma = 1 or 10 neighbours, Birch with threshold 0.1 and HDBSCAN with clusters of at least 1% on rows scaled to unit
  variance (one factor for all columns), Genie, KASP and RASP with their defaults.
"""

NOTES = """
## How to read it

Clusters are in the eye of the labeller: on overlapping Gaussians (s3, s4, d31) the labels say which Gaussian
a row came from, which K-means and mixtures are made for; on shapes (atom, chainlink, spirals, rings) only methods that
follow a shape can be right. What was tried and did not help stands in [choices](choices.md).
"""

# Sets on which the number of clusters was to be found, named before anything was measured.
K_SETS = ("hepta", "lsun", "tetra", "twodiamonds", "wingnut", "chainlink", "atom", "r15", "s1", "unbalance", "a1",
          "jain", "spiral", "moons", "circles", "five blobs")  # fmt: skip

EXPLAINED: dict[str, str] = {}
