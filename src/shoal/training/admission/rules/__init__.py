"""What a TrainJob may ask of its runtime: one module for each subject, each rule a function from values to problems."""
