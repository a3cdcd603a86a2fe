"""What attackers gain from a table: about who somebody is, about numbers, about sensitive values."""
