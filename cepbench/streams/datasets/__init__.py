"""The catalogue of data sets in ``datasets/*/``: finding, making, verifying and opening them."""
