"""Local suppression: values of rows at risk are left empty, or the rows left out."""
