"""The six views of the page, and the pictures of evidence they show."""
