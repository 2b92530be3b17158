"""The map of the course: links to what is there, the rest as coming, arrows as the list has them."""

import re
from dataclasses import replace

import pytest

from fixtures.course import CHAPTERS, ROOT, Chapter
from fixtures.views import course_map

LINK = re.compile(r"\[([^\]]+)\]\(([^)]+)\)")


def a_chapter(number, *, after=(), title=None, state="ready", part="One"):
    return Chapter(
        number=number,
        slug=f"slug_{number}",
        title=title or f"Title {number}",
        question="Why?",
        part=part,
        minutes=10,
        prerequisites=tuple(after),
        state=state,
    )


@pytest.mark.parametrize("draw", [course_map.table, course_map.one_day])
@pytest.mark.parametrize("folder", ["notebooks", ".", "exercises/02_the_counter"])
def test_every_link_leads_to_a_file_that_is_there(draw, folder):
    links = LINK.findall(draw(links_from=folder))
    assert links
    for title, target in links:
        assert (ROOT / folder / target).resolve().is_file(), title
        assert not target.startswith("/")


def test_the_table_links_to_what_is_ready_and_marks_the_rest_as_coming():
    ready, coming = a_chapter("01"), a_chapter("02", after=["01"], state="coming")
    table = course_map.table([ready, coming])
    assert "| 01 | [Title 01](01_slug_01.ipynb) | Why? | 10 | – |" in table
    assert "| 02 | Title 02 *(coming)* | Why? | 10 | 01 |" in table
    assert "02_slug_02" not in table


def test_links_start_at_the_folder_of_the_page():
    chapters = [a_chapter("01")]
    assert "(notebooks/01_slug_01.ipynb)" in course_map.table(chapters, links_from=".")
    assert "(../../notebooks/01_slug_01.ipynb)" in course_map.table(chapters, links_from="exercises/x")


def test_the_table_has_each_chapter_once_under_its_part_and_equal_columns():
    rows = course_map.table().splitlines()
    assert [number[1] for row in rows if (number := re.match(r"\| (\d\d|[A-Z]) \|", row))] == [
        one.number for one in CHAPTERS
    ]
    assert {row.count("|") for row in rows} == {6}
    parts = [row.split("**")[1] for row in rows if "**" in row]
    assert parts == list(dict.fromkeys(one.part for one in CHAPTERS))


def test_minutes_are_reading_plus_exercise():
    with_exercise = replace(a_chapter("01"), exercise_minutes=15)
    assert "| 10 + 15 |" in course_map.table([with_exercise])


def test_the_picture_draws_the_direct_ways_only():
    chapters = [a_chapter("01"), a_chapter("02", after=["01"]), a_chapter("03", after=["01", "02"])]
    picture = course_map.picture(chapters)
    assert re.findall(r"c(\d\d) --> c(\d\d)", picture) == [("01", "02"), ("02", "03")]


def test_the_picture_of_the_course_keeps_every_prerequisite_reachable():
    arrows = re.findall(r"c(\d\d) --> c(\d\d)", course_map.picture())

    def before(number):
        near = {early for early, late in arrows if late == number}
        return near.union(*(before(early) for early in near))

    for one in CHAPTERS:
        assert set(one.prerequisites) <= before(one.number), one.number


def test_the_picture_tells_coming_by_word_and_dashes_not_by_colour():
    picture = course_map.picture([a_chapter("01"), a_chapter("02", state="coming")])
    assert 'c01["01 Title 01"]' in picture
    assert 'c02["02 Title 02<br/>(coming)"]' in picture
    assert "class c02 coming" in picture
    assert "fill" not in picture
    assert "classDef" not in course_map.picture([a_chapter("01")])


def test_a_quote_in_a_title_does_not_end_the_label():
    assert 'c01["01 The #quot;save#quot;"]' in course_map.picture([a_chapter("01", title='The "save"')])


def test_the_one_day_track_is_in_order_and_names_the_pauses():
    lines = course_map.one_day().splitlines()
    assert [line[2:4] for line in lines] == ["00", "02", "04", "06", "08", "09"]
    assert [line[2:4] for line in lines if "to the pause" in line] == ["04", "06", "09"]


def test_a_track_through_a_chapter_that_the_list_lacks_is_an_error():
    with pytest.raises(KeyError):
        course_map.one_day([a_chapter("00")])


def test_a_notebook_gets_markdown():
    assert "flowchart" in course_map.show_map().data
    assert course_map.show_one_day().data == course_map.one_day()
