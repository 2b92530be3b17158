"""The project as an nbgrader course: solutions are the source, exercises the release.

Instructors find the commands in the README. The database and the folders of submissions are left out of git.
"""

from pathlib import Path

c = get_config()  # noqa: F821

c.CourseDirectory.course_id = "durable-execution"
c.CourseDirectory.root = str(Path(__file__).resolve().parent)
c.CourseDirectory.source_directory = "solutions"
c.CourseDirectory.release_directory = "exercises"
c.CourseDirectory.submitted_directory = "submitted"
c.CourseDirectory.autograded_directory = "autograded"
c.CourseDirectory.feedback_directory = "feedback"

# zip_collect: a file handed in is called STUDENT_02_the_counter.ipynb.
c.FileNameCollectorPlugin.named_regexp = r".*[/\\](?P<student_id>[^/\\]+?)_(?P<file_id>\d\d_.+)"

c.ClearSolutions.code_stub = {"python": "raise NotImplementedError()"}
c.ClearSolutions.text_stub = "Your answer here."

# An answer has a time limit of its own (fixtures.checks.judge); this one is for what hangs elsewhere.
c.Execute.timeout = 120
