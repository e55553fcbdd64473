"""Pages: reports and the generated passages of documents, most of them a command (python -m basin.pages.NAME)."""
