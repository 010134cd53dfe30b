"""Fitted models as files: arrays and JSON in a zip, read back without executing anything in the file.

A ``.dc2`` file holds ``model.json`` and one ``.npy`` member per array, so that `numpy.load` and any zip tool can look
into it. The JSON names a class and the small records it is made of. Only classes that registered themselves with
`saved_model` or `saved_record` are ever made, every array is read without pickle, and sizes are checked before
anything is unpacked. `dc2.load` reads a file back.
"""

from dc2.model_file.registry import saved_model, saved_record
from dc2.model_file.save import SaveMixin

__all__ = ["SaveMixin", "saved_model", "saved_record"]
