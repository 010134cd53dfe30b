"""The sections of a cluster report, one file each."""
