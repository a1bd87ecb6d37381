"""The six views of the page, and the charts of evidence."""
