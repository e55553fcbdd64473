"""What the program wrote, as pandas tables and numpy arrays: nothing is computed or judged here."""
