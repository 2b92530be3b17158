"""The course's list, the files, the README and CONTRIBUTING.md say the same."""

import json
import re
import subprocess

import pytest

from fixtures.course import CHAPTERS, ROOT, chapter
from tools import readme

LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
PAGES = ("README.md", "CONTRIBUTING.md")


def text_of(name):
    return (ROOT / name).read_text(encoding="utf-8")


def tracked():
    """The files that git has in its index."""
    command = ["git", "ls-files", "-z"]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return set(done.stdout.split("\0"))


def test_numbers_and_slugs_are_unique_and_in_order():
    numbers = [one.number for one in CHAPTERS]
    assert numbers == sorted(set(numbers))
    assert len({one.slug for one in CHAPTERS}) == len(CHAPTERS)


def test_a_chapter_comes_after_what_it_builds_on():
    seen = set()
    for one in CHAPTERS:
        assert set(one.prerequisites) <= seen, one.number
        seen.add(one.number)


def test_ready_chapters_are_in_git_and_no_other_notebook_is():
    chapters = {one.notebook.as_posix() for one in CHAPTERS if one.ready}
    assert {name for name in tracked() if re.match(r"notebooks/(\d\d|[A-Z])_.*\.ipynb$", name)} == chapters


def test_an_unknown_chapter_is_answered_with_those_there_are():
    with pytest.raises(KeyError, match=r"no chapter '99' in the course: there are 00, 01"):
        chapter("99")


def test_the_generated_parts_of_the_readme_are_up_to_date():
    old = text_of("README.md")
    assert readme.written(old) == old, "run make readme"


def test_a_generated_part_that_was_edited_by_hand_is_seen_and_mended():
    text = text_of("README.md")
    spoilt = text.replace("| 00 | [Start here]", "| 00 | [Begin here]")
    assert spoilt != text
    assert readme.written(spoilt) == text


def test_a_part_without_a_place_is_named():
    with pytest.raises(ValueError, match="places for"):
        readme.written(text_of("README.md").replace("<!-- begin matrix -->", ""))


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_files_in_git(page):
    files = tracked()
    local = [link for link in LINK.findall(text_of(page)) if "://" not in link and not link.startswith("#")]
    assert [link for link in local if link.split("#")[0] not in files] == []


@pytest.mark.parametrize("page", PAGES)
def test_files_that_a_page_names_are_there(page):
    named = re.findall(
        r"`((?:tools|notebooks|src|\.ci)/[\w./]+)`|(?:python|sh) (tools/\w+\.\w+)", text_of(page)
    )
    names = {one or other for one, other in named}
    assert names, "the page names no file: is the pattern wrong?"
    # What a placeholder stands for, and a script that a command writes, are not there.
    missing = {name for name in names if not (ROOT / name).exists()}
    assert {name for name in missing if "NN_" not in name} == set()


@pytest.mark.parametrize("page", PAGES)
def test_make_knows_the_commands_that_a_page_names(page):
    commands = set(re.findall(r"`make ([a-z-]+)|^make ([a-z-]+)", text_of(page), flags=re.MULTILINE))
    targets = set(re.findall(r"^([a-z-]+):", text_of("Makefile"), flags=re.MULTILINE))
    assert commands
    assert {one or other for one, other in commands} <= targets


def test_the_versions_in_the_readme_are_the_pinned_ones():
    pins = dict(re.findall(r"^([\w-]+)==([\w.]+)", text_of("requirements.txt"), flags=re.MULTILINE))
    rows = re.findall(r"^\| ([a-zA-Z][\w-]+) \| .* \| ([\d.]+) \|$", text_of("README.md"), flags=re.MULTILINE)
    assert len(rows) == 3
    assert rows == [(name, pins[name.lower()]) for name, _ in rows]


def test_the_oldest_versions_in_the_readme_are_what_pyproject_allows():
    from tools.environment import OLDEST

    for pin in OLDEST:
        name, version = pin.split("==")
        assert f'"{name}>={version},' in text_of("pyproject.toml")
        assert re.search(
            rf"^\| {name} \| {re.escape(version)} and newer", text_of("README.md"), flags=re.MULTILINE
        )


def test_the_command_says_whether_the_readme_is_up_to_date(capsys, monkeypatch, tmp_path):
    assert readme.main(["--check"]) == 0
    assert capsys.readouterr().out == "README.md is up to date\n"
    text = text_of("README.md")
    spoilt = text.replace("| 00 | [Start here]", "| 00 | [Begin here]")
    (tmp_path / "README.md").write_text(spoilt, encoding="utf-8")
    monkeypatch.setattr(readme, "ROOT", tmp_path)
    assert readme.main(["--check"]) == 1
    assert "run make readme" in capsys.readouterr().err
    assert (tmp_path / "README.md").read_text(encoding="utf-8") == spoilt, "--check writes nothing"
    assert readme.main([]) == 0
    assert (tmp_path / "README.md").read_text(encoding="utf-8") == text


def test_the_command_for_the_readmes_picture_names_the_cell_of_the_lab():
    command = r"tools/screenshot\.py (\S+\.ipynb) --run --cell (\d+)"
    name, cell = re.search(command, text_of("README.md")).groups()
    notebook = json.loads(text_of(name))
    assert "CancelLab()" in "".join(notebook["cells"][int(cell)]["source"])
