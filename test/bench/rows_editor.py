"""text_editor on large and small files."""
from figure import EXIT0, compare, figures, limit
from lab import Command

FIGURES, figure = figures("editor")
SOURCE = "int value_of(const char *name)\n{\n    return lookup(name, 0);\n}\n" * 32  # 2 KB


@figure("view of lines 500,000 to 500,040 of a 100 MB file", "the same: peak memory")
def view(lab, time_row, memory_row):
    place, path = lab.place(), lab.big_file()
    request = lab.request("text_editor", command="view", path=str(path), view_range=[500_000, 500_040])
    ours, sed = place.rounds(20, place.exec(request, expect="500040\\t000500039"),
                             Command("/bin/sed", "-n", "500000,500040p", path, expect="000500039"))
    compare(time_row, ours, sed, "sed -n of the same", 0.3)
    limit(memory_row, ours.peak_kb, "KiB", 2048, sed.peak_kb, "sed")


def swap(lab, path, one, other):
    """Two requests that undo each other."""
    return [lab.request("text_editor", command="str_replace", path=str(path), old_str=a, new_str=b)
            for a, b in ((one, other), (other, one))]


@figure("str_replace in a 100 MB file", "the same: peak memory, in KiB of the file's 97,656")
def replace(lab, time_row, memory_row):
    place, path = lab.place(), lab.big_file()
    copied = lab.folder / "copied"
    ours, cp = place.rounds(10, place.exec(*swap(lab, path, "000500000 the", "000500000 einer"), expect="has been edited"),
                            Command("/bin/cp", "--reflink=never", path, copied, after=f"rm {copied}"))
    compare(time_row, ours, cp, "cp --reflink=never of it", 3.0)
    size = path.stat().st_size // 1024
    limit(memory_row, ours.peak_kb, "KiB", int(2.2 * size), size, "the file's size")


@figure("str_replace in a 2 KB file through exec")
def small(lab, row):
    place, path = lab.place(), lab.folder / "small.c"
    path.write_text(SOURCE + "int here;\n")
    ours, nothing = place.rounds(300, place.exec(*swap(lab, path, "int here;", "int there;"), expect="has been edited"),
                                 place.nothing())
    compare(row, ours, nothing, EXIT0, 4.0)
