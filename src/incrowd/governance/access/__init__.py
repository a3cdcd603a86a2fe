"""Who may do what: roles, tokens, passwords, and the book in which they are written down."""
