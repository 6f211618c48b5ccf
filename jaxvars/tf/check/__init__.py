"""`python -m jaxvars.tf check PATHS...`: which of a program's names are there.

programs    programs and notebooks: reading, rewriting, running them
names       which names of TensorFlow's a program uses
command     what is said of them
"""
