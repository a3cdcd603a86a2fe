"""Quality: the information loss of recoding and suppression."""
