"""What the wire says: one module per API group, with typed objects, names, labels and defaults. No I/O."""
