"""What follows from the numbers of a sweep: which runs compare, statistics and verdicts. Nothing is drawn or written here."""
