r"""Hidden structures: which estimator finds them from the final answer alone?

Six small tasks, one for each kind of structure. In each, a scorer gives scores $s$ to the parts of a structure, the
structure $z$ that follows from them is read by a second stage, and only the second stage's answer is ever supervised.
The scorer learns through $z$ alone, so the estimators differ in nothing but what they send back through it. The sets
are so small that they can be listed: the exact gradient of the expected loss is known, and every estimator is held
against it.

`settings` has the numbers of the experiment, `tasks` what is to be learnt, and `data` draws it. `methods` are ways to
teach a scorer, `contenders` are those that take part. `training` is what happens, `gradients` says how good gradients
are, `results` has what came out, and `tables` shows it. `induced` is about structures of trained systems instead: it
holds them against trivial ones.
"""
