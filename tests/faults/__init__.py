"""One fault at each place where the product asks the system for something."""
