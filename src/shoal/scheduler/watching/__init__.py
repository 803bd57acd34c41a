"""Between the cluster and the engine: what is watched becomes the model, and what is decided is carried out.

``reading`` turns objects into the model's words, ``mirror`` keeps the model up to date, ``carrying`` writes decisions
down, ``cycles`` runs one after the other, ``publishing`` shows the outcome to those who only look.
"""
