"""The reasons why a file can't be read."""


class ReadError(Exception):
    """A file that is missing, truncated or unreadable."""


class SchemaError(ReadError):
    """A file that is not Basin's, of another kind, or of a newer major version."""
