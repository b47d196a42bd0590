"""Logging outside of workers: a line is shown without secrets, its traceback too."""

import logging

from registry import masking


class Masked(logging.Formatter):
    """The usual format, masked as a whole: what a library or an error says may hold a secret."""

    def format(self, record: logging.LogRecord) -> str:
        return masking.mask_text(super().format(record))
