"""The catalogue of data sets: what ``datasets/*/`` describes, found, made, verified and opened."""
