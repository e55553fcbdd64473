"""What stands in a panel."""

from basin.figures.style import LETTER


def words_in(ax):
    """Without its letter."""
    return [text.get_text() for text in ax.texts if text.get_gid() != LETTER]
