from pathlib import Path

from alembic.script import ScriptDirectory

import app.db
from app.db.migrate import head_revision


def test_the_head_read_from_the_files_is_alembics() -> None:
    folder = Path(app.db.__path__[0]) / "migrations"
    assert head_revision() == ScriptDirectory(str(folder)).get_current_head()
