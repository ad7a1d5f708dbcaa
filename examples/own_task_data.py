"""Data for examples/own_task.py: the built-in corpus, with the verb of each sentence as what it is about.

python examples/own_task_data.py data        # makes data/train.focus and data/dev.focus
"""

import sys
from pathlib import Path

from spigot_nlp.corpora.synthetic import splits

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "data")
folder.mkdir(parents=True, exist_ok=True)
made = splits(train=400, dev=100)
for name, sentences in (("train", made.train), ("dev", made.dev)):
    lines = (f"{(s.heads or ()).index(0) + 1}\t{' '.join(s.forms)}\n" for s in sentences)
    (folder / f"{name}.focus").write_text("".join(lines), encoding="utf-8")
