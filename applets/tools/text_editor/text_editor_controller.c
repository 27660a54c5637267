#include "text_editor_controller.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "edit_dir.h"
#include "edit_encoding.h"
#include "edit_file.h"
#include "edit_history.h"
#include "edit_match.h"
#include "edit_path.h"
#include "edit_text.h"
#include "edit_together.h"
#include "edit_view.h"
#include "edit_whole.h"
#include "edit_write.h"
#include "io.h"
#include "mem.h"

/* Bytes in front of an edit that are shown with it. */
enum { HEAD_MAX = 4000 };
#define CUT_SIGN "…"

#define ROLLED_BACK "[An edit of this file had been interrupted; it was rolled back first]\n"

static int load(struct edit_file *f, struct edit_path *p, struct undo_store *undo, struct buf *notes,
                struct err *err)
{
    int rolled_back = edit_load(f, p, undo, err);
    if (rolled_back > 0)
        buf_adds(notes, ROLLED_BACK);
    return rolled_back < 0 ? -1 : 0;
}

/* A byte order mark of UTF-16. */
static bool has_mark(const char *s, size_t n)
{
    return n >= 2 && (memcmp(s, "\xFF\xFE", 2) == 0 || memcmp(s, "\xFE\xFF", 2) == 0);
}

/* Whether it isn't shown as it is. */
static bool is_coded(const struct edit_file *f, const struct edit_request *r)
{
    char mark[2];
    return r->encoding.s || (pread(f->fd, mark, 2, 0) == 2 && has_mark(mark, 2));
}

/* As the text that it is, which the view reads from a file in memory. */
static int view_coded(struct edit_file *f, const struct edit_request *r, const struct edit_path *p,
                      struct buf *answer, struct err *err)
{
    struct coded c CODED_AUTO = {0};
    struct stat st;
    if (edit_file_read(f, p, err) < 0 || coded_take(&c, &f->data, &r->encoding, p->shown, err) < 0)
        return -1;
    int fd FD_AUTO = memfd_create("text", MFD_CLOEXEC);
    if (fd < 0 || io_write_all(fd, buf_str(c.text), c.text->len) < 0 || lseek(fd, 0, SEEK_SET) < 0 ||
        fstat(fd, &st) < 0)
        return err_sys(err, ERR_TOOL, errno, "%s can't be shown", p->shown);
    return view_file(fd, &st, &r->view_range, p->shown, answer, err);
}

static int view(const struct edit_request *r, struct edit_path *p, struct buf *answer, struct err *err)
{
    struct edit_file f EDIT_FILE_AUTO = EDIT_FILE_INIT;
    struct undo_store undo UNDO_AUTO = UNDO_INIT;
    struct buf notes BUF_AUTO = BUF_INIT;
    if (S_ISDIR(p->st.st_mode)) {
        buf_addf(answer, "Files and directories up to 2 levels deep in %s, without hidden ones:\n", p->shown);
        return edit_dir_list(p, answer, err);
    }
    undo_open(&undo, false);
    if (journal_has(&undo, p)) {
        /* What can't be put right can be looked at. */
        if (load(&f, p, &undo, &notes, err) < 0)
            buf_addf(&notes, "[An edit of this file had been interrupted: %s]\n", err->msg);
        edit_file_release(&f);
    }
    if (edit_file_open(&f, p, err) < 0)
        return -1;
    buf_addf(answer, "Output of running `cat -n` on %s:\n", p->shown);
    int rc = is_coded(&f, r) ? view_coded(&f, r, p, answer, err)
                             : view_file(f.fd, &f.st, &r->view_range, p->shown, answer, err);
    if (rc < 0)
        return -1;
    return buf_add(answer, notes.data, notes.len);
}

/* Lines `from` to `to` of what the splice leads to, which are the edited ones, with the lines around them.
 * The splice begins in line `at_line`. */
static void show_edit(const char *data, size_t n, const struct splice *s, long long at_line, long long from,
                      long long to, struct buf *answer)
{
    long long first = from > EDIT_CONTEXT ? from - EDIT_CONTEXT : 1;
    size_t begin = text_line_back(data, s->at, (size_t)(at_line - first));
    const char *rest = data + s->at + s->cut, *lf;
    struct view v;
    /* Long lines in front must not take the place of what was edited. */
    for (; s->at - begin > HEAD_MAX && (lf = memchr(data + begin, '\n', s->at - begin)); first++)
        begin = (size_t)(lf - data) + 1;
    size_t left_out = s->at - begin > HEAD_MAX ? s->at - begin - HEAD_MAX : 0;
    while (left_out > 0 && left_out < s->at - begin && (data[begin + left_out] & 0xC0) == 0x80)
        left_out++; /* to where a character begins */
    view_begin(&v, answer, first);
    if (left_out > 0)
        view_feed(&v, CUT_SIGN, strlen(CUT_SIGN), -1);
    begin += left_out;
    if (view_feed(&v, data + begin, s->at - begin, to + EDIT_CONTEXT) &&
        view_feed(&v, s->put, s->n_put, to + EDIT_CONTEXT) &&
        view_feed(&v, rest, (size_t)(data + n - rest), to + EDIT_CONTEXT))
        view_end_of_text(&v);
    view_notes(&v, -1);
    if (left_out > 0)
        buf_addf(answer, "[" CUT_SIGN " stands for the first %zu bytes of line %lld]\n", left_out, first);
}

static void note_undo(const struct undo_store *undo, struct buf *answer)
{
    if (undo->why.msg[0] != '\0')
        buf_addf(answer, "[This edit can't be undone: %s]\n", undo->why.msg);
}

#define CHECK_IT                                                                                             \
    "Check that this is what was meant (indentation, nothing doubled or lost); edit again or `undo_edit` "   \
    "if not.\n"

/* `from`, `to`, `at_line`: as show_edit; the splice is one of the text. */
static int write_edit(struct edit_file *f, const struct coded *c, const struct edit_path *p,
                      const struct splice *s, long long at_line, long long from, long long to,
                      struct undo_store *undo, struct buf *answer, struct err *err)
{
    struct splice bytes = *s;
    struct buf put BUF_AUTO = BUF_INIT;
    if (coded_splice(c, &bytes, &put, p->shown, err) < 0)
        return -1;
    undo_open(undo, true);
    if (edit_write(f, p, &bytes, ENTRY_EDIT, undo, err) < 0)
        return -1;
    show_edit(buf_str(c->text), c->text->len, s, at_line, from, to, answer);
    note_undo(undo, answer);
    return 0;
}

static int overwrite(const struct buf *content, struct edit_path *p, struct buf *answer, struct err *err)
{
    struct edit_file f EDIT_FILE_AUTO = EDIT_FILE_INIT;
    struct undo_store undo UNDO_AUTO = UNDO_INIT;
    struct buf notes BUF_AUTO = BUF_INIT;
    if (load(&f, p, &undo, &notes, err) < 0)
        return -1;
    struct splice s = {.cut = f.data.len, .put = buf_str(content), .n_put = content->len};
    undo_open(&undo, true);
    if (edit_write(&f, p, &s, ENTRY_EDIT, &undo, err) < 0)
        return -1;
    buf_addf(answer, "File overwritten at: %s (%zu bytes, before %zu)\n", p->shown, content->len, f.data.len);
    note_undo(&undo, answer);
    return buf_add(answer, notes.data, notes.len);
}

static int create(const struct edit_request *r, struct edit_path *p, struct buf *answer, struct err *err)
{
    struct undo_store undo UNDO_AUTO = UNDO_INIT;
    struct buf content BUF_AUTO = BUF_INIT;
    if (encoding_put(&r->encoding, r->file_text.s, r->file_text.n, &content, p->shown, err) < 0)
        return -1;
    if (p->exists && r->overwrite && S_ISREG(p->st.st_mode))
        return overwrite(&content, p, answer, err);
    if (p->exists)
        return err_set(err, ERR_TOOL, "The path %s exists already (it is %s); `create` overwrites nothing%s",
                       p->shown, edit_type(p->st.st_mode),
                       S_ISREG(p->st.st_mode)
                           ? ". To change a file use `str_replace` or `insert`, to replace it `overwrite`"
                           : "");
    undo_open(&undo, true);
    if (edit_create(p, buf_str(&content), content.len, &undo, err) < 0)
        return -1;
    buf_addf(answer, "File created at: %s (%zu bytes)\n", p->shown, content.len);
    note_undo(&undo, answer);
    return 0;
}

/* Directories that were made go again where the file doesn't come about. */
static int create_with_parents(const struct edit_request *r, struct buf *answer, struct err *err)
{
    struct edit_path p EDIT_PATH_AUTO = EDIT_PATH_INIT;
    size_t made = 0;
    char *path MEM_AUTO = mem_dup(r->path.s, r->path.n);
    if (r->parents && edit_make_parents(path, &made, err) < 0)
        return -1;
    int rc = edit_path_resolve(&p, r->path.s, r->path.n, true, err);
    if (rc == 0)
        rc = create(r, &p, answer, err);
    if (rc < 0)
        edit_unmake_parents(path, made);
    return rc;
}

static void put_replaced(const struct edit_path *p, const struct edit_found *m, struct buf *answer)
{
    buf_addf(answer, "The file %s has been edited: old_str was replaced ", p->shown);
    if (m->count > 1)
        buf_addf(answer, "%zu times, in %s. Output of running `cat -n` on a snippet at the first:\n",
                 m->count, m->lines.data);
    else
        buf_addf(answer, "at %s. Output of running `cat -n` on a snippet of it:\n", m->lines.data);
}

static int str_replace(const struct edit_request *r, struct edit_path *p, struct buf *answer, struct err *err)
{
    struct edit_file f EDIT_FILE_AUTO = EDIT_FILE_INIT;
    struct undo_store undo UNDO_AUTO = UNDO_INIT;
    struct edit_found m EDIT_FOUND_AUTO = EDIT_FOUND_INIT;
    struct buf notes BUF_AUTO = BUF_INIT;
    struct coded c CODED_AUTO = {0};
    struct edit_wish wish = {&r->old_str, &r->new_str, r->replace_all, r->expected_count};
    if (load(&f, p, &undo, &notes, err) < 0 || coded_take(&c, &f.data, &r->encoding, p->shown, err) < 0 ||
        edit_match(buf_str(c.text), c.text->len, &wish, p->shown, &m, err) < 0)
        return -1;
    long long line = 1 + (long long)text_count_lf(buf_str(c.text), m.s.at);
    put_replaced(p, &m, answer);
    long long last = line + (long long)text_count_lf(r->new_str.s, r->new_str.n);
    if (write_edit(&f, &c, p, &m.s, line, line, last, &undo, answer, err) < 0)
        return -1;
    if (m.s.cut == m.s.n_put && memcmp(buf_str(c.text) + m.s.at, m.s.put, m.s.cut) == 0)
        buf_adds(answer, "[What was put in is what was there: the content of the file is the same]\n");
    if (m.crlf)
        buf_adds(answer, "[The new text was given the CRLF line ends of the lines around it]\n");
    buf_add(answer, notes.data, notes.len);
    buf_adds(answer, CHECK_IT);
    return 0;
}

static int insert(const struct edit_request *r, struct edit_path *p, struct buf *answer, struct err *err)
{
    struct edit_file f EDIT_FILE_AUTO = EDIT_FILE_INIT;
    struct undo_store undo UNDO_AUTO = UNDO_INIT;
    struct buf put BUF_AUTO = BUF_INIT;
    struct buf notes BUF_AUTO = BUF_INIT;
    struct splice s;
    struct coded c CODED_AUTO = {0};
    const struct text *text = r->new_str.s ? &r->new_str : &r->insert_text;
    if (load(&f, p, &undo, &notes, err) < 0 || coded_take(&c, &f.data, &r->encoding, p->shown, err) < 0)
        return -1;
    long long n_lines = 1 + (long long)text_count_lf(buf_str(c.text), c.text->len);
    if (edit_insertion(buf_str(c.text), c.text->len, r->insert_line, text, p->shown, &put, &s, err) < 0)
        return -1;
    buf_addf(answer,
             "The file %s has been edited: text was inserted after line %lld. Output of running `cat -n` on "
             "a snippet "
             "of it:\n",
             p->shown, r->insert_line);
    long long first = r->insert_line + 1, last = first + (long long)text_count_lf(text->s, text->n);
    long long at_line = r->insert_line == n_lines ? n_lines : first;
    if (write_edit(&f, &c, p, &s, at_line, first, last, &undo, answer, err) < 0)
        return -1;
    buf_add(answer, notes.data, notes.len);
    buf_adds(answer, CHECK_IT);
    return 0;
}

static int undo_create(const struct edit_path *p, bool changed, struct buf *answer, struct err *err)
{
    if (unlinkat(p->dir, p->name, 0) < 0)
        return err_set(err, ERR_TOOL, "The creation of %s could not be undone: %s", p->shown,
                       edit_errno(errno));
    buf_addf(answer, "File deleted at: %s (its creation was undone)\n", p->shown);
    if (changed)
        buf_adds(answer, "[It had been changed since it was created; the changes are gone with it]\n");
    return 0;
}

static int undo_content(struct edit_file *f, const struct edit_path *p, const struct entry *e, bool changed,
                        struct undo_store *undo, struct buf *answer, struct err *err)
{
    struct splice s = edit_difference(f, e->old, e->item.n_old);
    if (edit_write(f, p, &s, ENTRY_UNDO, undo, err) < 0)
        return -1;
    bool marked = has_mark(buf_str(&f->data), f->data.len);
    buf_addf(answer, "The last edit of %s has been undone.%s\n", p->shown,
             marked ? "" : " Output of running `cat -n` on a snippet of it:");
    long long line = 1 + (long long)text_count_lf(buf_str(&f->data), s.at);
    if (!marked)
        show_edit(buf_str(&f->data), f->data.len, &s, line, line,
                  line + (long long)text_count_lf(s.put, s.n_put), answer);
    if (changed)
        buf_adds(answer,
                 "[The file had been changed by others since that edit; those changes are undone with it]\n");
    return 0;
}

static int undo_edit(struct edit_path *p, struct buf *answer, struct err *err)
{
    struct edit_file f EDIT_FILE_AUTO = EDIT_FILE_INIT;
    struct undo_store undo UNDO_AUTO = UNDO_INIT;
    struct entry e ENTRY_AUTO = ENTRY_INIT;
    struct buf notes BUF_AUTO = BUF_INIT;
    struct entry_item item;
    if (load(&f, p, &undo, &notes, err) < 0)
        return -1;
    int found = undo_newest(&undo, p, &f, &item, &e, err);
    if (found < 0)
        return -1;
    if (found == 0)
        return err_set(
            err, ERR_TOOL,
            "There is no edit of %s to undo; the last %d edits of a file are kept, those of other users and "
            "programs are not",
            p->shown, EDIT_UNDO_DEPTH);
    bool changed = !entry_led_to(&e, buf_str(&f.data), f.data.len);
    if (undo_begin(&undo, &item, p, err) < 0)
        return -1;
    int rc = e.item.kind == ENTRY_CREATED ? undo_create(p, changed, answer, err)
                                          : undo_content(&f, p, &e, changed, &undo, answer, err);
    undo_end(&undo, &item, rc == 0);
    if (rc < 0)
        return -1;
    buf_add(answer, notes.data, notes.len);
    return 0;
}

static int history(const struct edit_path *p, struct buf *answer)
{
    struct undo_store undo UNDO_AUTO = UNDO_INIT;
    undo_open(&undo, false);
    if (undo_show(&undo, p, answer) == 0)
        buf_addf(answer, "There is no edit of %s to undo\n", p->shown);
    return 0;
}

int text_editor_run(const struct edit_request *r, struct buf *answer, struct err *err)
{
    struct edit_path p EDIT_PATH_AUTO = EDIT_PATH_INIT;
    if (r->command == EDIT_CREATE)
        return create_with_parents(r, answer, err);
    if (r->command == EDIT_PATCH || r->command == EDIT_MANY)
        return edit_together(r, answer, err);
    if (edit_path_resolve(&p, r->path.s, r->path.n, r->command == EDIT_HISTORY, err) < 0)
        return -1;
    switch (r->command) {
    case EDIT_VIEW:
        return view(r, &p, answer, err);
    case EDIT_STR_REPLACE:
        return str_replace(r, &p, answer, err);
    case EDIT_INSERT:
        return insert(r, &p, answer, err);
    case EDIT_UNDO:
        return undo_edit(&p, answer, err);
    case EDIT_HISTORY:
        return history(&p, answer);
    default:
        return err_set(err, ERR_INTERNAL, "text_editor has no such command");
    }
}
