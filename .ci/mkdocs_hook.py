"""What the site has beside docs/: the reference from the code, and files from above it."""

from pathlib import Path
import re
import sys
from typing import Any

from mkdocs.structure.files import File

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent

# Files above docs/ that are pages of the site, with their names there.
ABOVE = {
    'CONTRIBUTING.md': 'contributing.md',
    'CHANGELOG.md': 'changelog.md',
    'benchmarks/README.md': 'benchmarks.md',
}


def on_files(files: Any, config: Any) -> Any:
    """Add the pages of the reference, and what stands above docs/."""
    sys.path[:0] = [str(HERE), str(ROOT)]  # MkDocs takes away what a hook's import adds
    from reference import pages

    texts = pages()
    for name, page in ABOVE.items():
        text = re.sub(r'\]\((?:\.\./)?docs/', '](', (ROOT / name).read_text())
        for other, target in ABOVE.items():
            text = text.replace(f']({other}', f']({target}')
        texts[page] = text
    for path, text in texts.items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Let links to files above docs/ lead to their pages."""
    for name, page in ABOVE.items():
        markdown = re.sub(rf'\]\(((?:\.\./)*)\.\./{re.escape(name)}', rf'](\1{page}', markdown)
    return markdown
