"""Other people's loops: our environments in Gymnasium and MO-Gymnasium, our policies in river and Open Bandit Pipeline.

`pamo.loops.gym` needs Gymnasium (`pip install 'pamo[gym]'`); the others need nothing but the loop that they are for.
"""
