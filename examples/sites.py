"""Data that live apart: three sites, each a process of its own, cluster their rows together and keep them.

Each site compresses its rows with a tree of its own and sends the signatures: 200 points with weights. Only these are
merged and clustered, in one place; each site gets the labels of its own signatures back, in the order in which it sent
them, and gives every row the label of the row's signature. The sites see different parts of the plane, so that none
could find the clusters alone.
"""

import pickle
import subprocess
import sys

import numpy as np

from dc2 import Compressor, RPFCluster, Signatures, clustering_accuracy
from dc2.datasets import make_bananas

N_SITES = 3


def rows_of(site):
    """The rows of a site, and what they truly are: from left to right, a third of the plane each."""
    X, y = make_bananas(60_000)
    order = np.argsort(X[:, 0], kind="stable")
    mine = np.array_split(order, N_SITES)[site]
    return X[mine], y[mine]


def run_site(site, inbox, outbox):
    """What happens at a site: signatures go out, their labels come in, rows stay."""
    X, y = rows_of(site)
    compressor = Compressor(n_signatures=200, random_state=site).fit(X)
    pickle.dump(compressor.signatures_, outbox)
    outbox.flush()
    labels = pickle.load(inbox)[compressor.apply(X)]
    pickle.dump((y, labels), outbox)  # to score this example; of no use to the others


def main():
    command = [sys.executable, __file__]
    sites = [
        subprocess.Popen([*command, str(site)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for site in range(N_SITES)
    ]
    parts = [pickle.load(site.stdout) for site in sites]
    model = RPFCluster(n_clusters=2, random_state=0).fit_signatures(Signatures.merge(*parts))
    ends = np.cumsum([len(part) for part in parts])
    for site, labels in zip(sites, np.split(model.signature_labels_, ends[:-1]), strict=True):
        pickle.dump(labels, site.stdin)
        site.stdin.flush()
    answers = [pickle.load(site.stdout) for site in sites]
    for site in sites:
        site.communicate()
    truth, labels = (np.concatenate(column) for column in zip(*answers, strict=True))
    apart = clustering_accuracy(truth, labels)

    X, y = (np.concatenate(column) for column in zip(*map(rows_of, range(N_SITES)), strict=True))
    together = clustering_accuracy(y, RPFCluster(n_clusters=2, n_signatures=600, random_state=0).fit_predict(X))
    sent = sum(len(pickle.dumps(part)) for part in parts)
    print(
        f"accuracy: all rows together {together:.4f}, sites apart {apart:.4f}; "
        f"{X.nbytes / 1e3:,.0f} kB of rows stayed, {sent / 1e3:,.0f} kB of signatures went"
    )
    return together, apart


if __name__ == "__main__":
    if len(sys.argv) > 1:
        run_site(int(sys.argv[1]), sys.stdin.buffer, sys.stdout.buffer)
    else:
        main()
