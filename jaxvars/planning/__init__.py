"""What a program will take, before it is run, and variables without values to plan with."""
