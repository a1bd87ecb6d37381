"""From text to terms: words, stems and phrases."""
